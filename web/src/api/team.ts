// The team that this tab works in. Each tab has its own, so that a switch in
// one never changes what a click in another does.
const key = "millrace.team";

export function currentTeam(): string | null {
  return sessionStorage.getItem(key);
}

export function enterTeam(id: string | null): void {
  if (id) sessionStorage.setItem(key, id);
  else sessionStorage.removeItem(key);
}
