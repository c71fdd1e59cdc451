/** commitUrl is the web page of a commit, or null if the address of the repository does not imply one. */
export function commitUrl(git: string, commit: string): string | null {
  const scp = /^(?:[\w.-]+@)?([\w-]+(?:\.[\w-]+)+):([^/].*)$/.exec(git);
  let address: URL;
  try {
    address = new URL(scp && !git.includes("://") ? `ssh://${scp[1]}/${scp[2]}` : git);
  } catch {
    return null;
  }
  if (!["https:", "ssh:"].includes(address.protocol) || (address.protocol === "ssh:" && address.port !== ""))
    return null;
  const path = address.pathname.replace(/\/+$/, "").replace(/\.git$/, "");
  const page = address.hostname === "bitbucket.org" ? "commits" : "commit";
  return `https://${address.host}${path}/${page}/${commit}`;
}

/** behindText says how many commits a run's code is behind, or null if it is current or unknown. */
export function behindText(
  commit: string,
  status: { commit: string | null; latest: string | null; behind: number | null } | undefined,
): string | null {
  if (!status?.latest || status.latest === commit) return null;
  if (status.commit !== commit || status.behind === null) return "newer code is available";
  return status.behind === 1 ? "1 commit behind" : `${status.behind} commits behind`;
}
