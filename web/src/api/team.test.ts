import { expect, test, vi } from "vitest";
import { ask } from "./client.ts";
import { apiOf, enterTeamOfAddress, TeamClient, Teams } from "./team.ts";

/** tab is a tab's storage, which outlives its pages. */
function tab() {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
}

const open = (storage = tab()) => new Teams((team) => new TeamClient(team), storage);

const secrets = {
  queryKey: ["secrets"],
  queryFn: ({ client }: { client: TeamClient }) => ask(apiOf(client).GET("/api/secrets")),
} as object as { queryKey: string[]; queryFn: () => Promise<unknown> };

test("an answer is kept by the team that was asked, also when another one is on screen by then", async () => {
  const answers = new Map<string, (response: Response) => void>();
  vi.stubGlobal(
    "fetch",
    (request: Request) =>
      new Promise<Response>((resolve) => answers.set(request.headers.get("X-Team-Id") ?? "", resolve)),
  );
  const teams = open();
  teams.enter("team_a");
  const a = teams.current();
  const asked = a.fetchQuery(secrets);
  await expect.poll(() => answers.has("team_a")).toBe(true);
  teams.enter("team_b");
  const b = teams.current();
  answers.get("team_a")?.(Response.json({ success: true, data: ["of a"] }));
  await asked;
  expect([teams.current(), a.getQueryData(["secrets"]), b.getQueryData(["secrets"])]).toEqual([b, ["of a"], undefined]);
  vi.unstubAllGlobals();
});

test("a team that is entered again still has what was read of it", () => {
  const teams = open();
  teams.enter("team_a");
  const a = teams.current();
  teams.enter("team_b");
  teams.enter("team_a");
  expect(teams.current()).toBe(a);
});

test("a tab that is loaded again is in its team, and one that left every team is in none", () => {
  const storage = tab();
  expect(open(storage).current().team).toBeNull();
  open(storage).enter("team_a");
  const teams = open(storage);
  expect(teams.current().team).toBe("team_a");
  const heard = vi.fn();
  teams.subscribe(heard);
  teams.enter(null);
  expect([teams.current().team, open(storage).current().team, heard.mock.calls.length]).toEqual([null, null, 1]);
});

test("a link that names a team opens in it, and the address names it no more", () => {
  history.replaceState(null, "", "/billing?team=team_b&days=30#top");
  enterTeamOfAddress();
  expect(open(sessionStorage as never).current().team).toBe("team_b");
  expect(location.pathname + location.search + location.hash).toBe("/billing?days=30#top");
  history.replaceState(null, "", "/");
  enterTeamOfAddress();
  expect(open(sessionStorage as never).current().team).toBe("team_b");
});
