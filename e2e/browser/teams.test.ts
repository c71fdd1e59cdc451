// Somebody with several teams: what belongs to one never reaches another.
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, type Json, look, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

/** anotherTeam creates a team for somebody who stays in their own, and gives its id. */
async function anotherTeam({ api }: Person, name: string): Promise<string> {
  return (await api("POST", "/auth/teams", { name })).body.data.id;
}

async function switchTeam({ page }: Person, name: string): Promise<void> {
  await page.getByRole("button", { name: /^Team:/ }).click();
  await page.getByRole("menuitemradio", { name }).click();
  await page.getByRole("button", { name: `Team: ${name}` }).waitFor();
}

/** filesOf is the names of a team's files. */
async function filesOf({ context }: Person, team: string): Promise<string[]> {
  const answer = await context.request.get(`${harness.url}/api/files`, { headers: { "X-Team-Id": team } });
  return (await answer.json()).data.map((file: { name: string }) => file.name).sort();
}

/** held keeps back the requests that match until they are let go. */
async function held(person: Person, matches: (url: URL, team: string | undefined) => boolean) {
  let letGo = () => {};
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let count = 0;
  await person.page.route("**", async (route, request) => {
    if (matches(new URL(request.url()), request.headers()["x-team-id"])) {
      count++;
      await gate;
    }
    await route.continue();
  });
  return { letGo: () => letGo(), count: () => count };
}

test("files go to the team they were uploaded in, also those that waited during a switch", async () => {
  const ada = await harness.person("Ada Two");
  const { page } = ada;
  const lab = await anotherTeam(ada, "Quokka lab");
  const puts = await held(ada, (url) => url.pathname.startsWith("/objects/"));
  await page.goto(`${harness.url}/files`);
  const names = ["1.txt", "2.txt", "3.txt", "4.txt", "5.txt"];
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Upload files" }).first().click();
  await (await chooser).setFiles(names.map((name) => ({ name, mimeType: "text/plain", buffer: Buffer.from(name) })));
  await until("three uploads under way", async () => puts.count() === 3);
  const tray = page.getByRole("region", { name: "Uploads" });
  expect(await tray.getByText("Team:").count()).toBe(0);
  await switchTeam(ada, "Quokka lab");
  expect(await tray.getByText("Team: Ada Two's team").count()).toBe(names.length);
  await look(page, "uploading-elsewhere");
  puts.letGo();
  await until("all are somewhere", async () => {
    const [own, other] = await Promise.all([filesOf(ada, ada.team), filesOf(ada, lab)]);
    return own.length + other.length === names.length;
  });
  expect([await filesOf(ada, ada.team), await filesOf(ada, lab)]).toEqual([names, []]);
  calm(page);
});

test("an answer that was asked for in another team changes nothing in this one", async () => {
  const bo = await harness.person("Bo Two");
  const { page } = bo;
  const lab = await anotherTeam(bo, "Numbat lab");
  await page.goto(`${harness.url}/team`);
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Old team");
  const me = await held(bo, (url, team) => url.pathname === "/api/me" && team === bo.team);
  const late = page.waitForResponse(
    (response) => response.url().endsWith("/api/me") && response.request().headers()["x-team-id"] === bo.team,
  );
  await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
  await until("the page asks about its team", async () => me.count() > 0);
  await switchTeam(bo, "Numbat lab");
  me.letGo();
  await late;
  const asked = page.waitForRequest((request) => new URL(request.url()).pathname === "/api/runs");
  await page.getByRole("navigation").getByRole("link", { name: "Runs", exact: true }).click();
  expect((await asked).headers()["x-team-id"]).toBe(lab);
  calm(page);
});

test("a run that starts late stays in its team, and leaves the page of another one alone", async () => {
  const cy = await harness.person("Cy Two");
  const { page } = cy;
  const lab = await anotherTeam(cy, "Bilby lab");
  const made = await cy.api("POST", "/api/workflows", {
    name: "Counts",
    definition: { nodes: [{ id: "step", command: "true" }] },
  });
  const starts = await held(cy, (url) => url.pathname === "/api/runs");
  await page.goto(`${harness.url}/workflows/${made.body.data.id}?run=1`);
  await page.getByRole("dialog", { name: "Run" }).getByRole("button", { name: "Start" }).click();
  await until("the start of a run", async () => starts.count() > 0);
  const started = page.waitForResponse(
    (response) => response.request().method() === "POST" && response.status() === 202,
  );
  await page.keyboard.press("Escape");
  await switchTeam(cy, "Bilby lab");
  starts.letGo();
  const { runId } = (await (await started).json()).data;
  // The page has taken the answer when it has kept the values for the next run.
  await page.waitForFunction((key) => sessionStorage.getItem(key) !== null, `millrace.run.${made.body.data.id}`);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  expect(page.url()).toBe(`${harness.url}/workflows`);
  await page.getByRole("button", { name: "Team: Bilby lab" }).waitFor();
  const owner = async (team: string) =>
    (await cy.context.request.get(`${harness.url}/api/runs/${runId}`, { headers: { "X-Team-Id": team } })).status();
  expect([await owner(cy.team), await owner(lab)]).toEqual([200, 404]);
  calm(page);
});

test("a run that is watched during a switch stays in its team", async () => {
  const fay = await harness.person("Fay Two");
  const { page } = fay;
  const lab = await anotherTeam(fay, "Dunnart lab");
  const command = "for i in $(seq 1 3000); do echo tick $i; sleep 0.2; done";
  const made = await fay.api("POST", "/api/workflows", {
    name: "Long counts",
    definition: { nodes: [{ id: "step", name: "Step", command }] },
  });
  const run = (await fay.api("POST", "/api/runs", { workflowId: made.body.data.id })).body.data.runId;
  let holds = false;
  const logs = await held(fay, (url) => holds && url.pathname === `/api/runs/${run}/logs`);
  await page.goto(`${harness.url}/runs/${run}?tab=log&node=step`);
  const log = page.getByRole("region", { name: "Log" });
  await log
    .getByText(/^tick \d+$/)
    .first()
    .waitFor();
  holds = true;
  await until("more of the log is asked for", async () => logs.count() > 0);
  const stopped = page.waitForEvent("requestfailed", (request) => request.url().endsWith(`/api/runs/${run}/stream`));
  await switchTeam(fay, "Dunnart lab");
  await stopped;
  const teams = new Set<string | undefined>();
  page.on("request", (request) => {
    if (new URL(request.url()).pathname.startsWith("/api/")) teams.add(request.headers()["x-team-id"]);
  });
  holds = false;
  logs.letGo();
  await page.getByRole("navigation").getByRole("link", { name: "Runs", exact: true }).click();
  await page.getByText("No runs yet").waitFor();
  expect(await page.title()).not.toContain("Long counts");
  expect(await page.getByText("Long counts").count()).toBe(0);
  expect([...teams]).toEqual([lab]);
  // Back in its team the run goes on.
  await switchTeam(fay, "Fay Two's team");
  await page.goto(`${harness.url}/runs/${run}?tab=log`);
  await log
    .getByText(/^tick \d+$/)
    .first()
    .waitFor();
  await page.getByRole("heading", { level: 1 }).getByText("Running").waitFor();
  expect((await fay.api("POST", `/api/runs/${run}/cancel`)).status).toBeLessThan(300);
  await page.getByRole("heading", { level: 1 }).getByText("Cancelled").waitFor();
  calm(page);
});

/** lab is a host with a team that has something to see in it. */
async function lab(name: string) {
  const host = await harness.person(`Host ${name}`);
  await harness.verify(host.email);
  await host.api("PATCH", `/auth/teams/${host.team}`, { name: `${name} lab` });
  const made = await host.api("POST", "/api/workflows", {
    name: `${name} counts`,
    definition: { nodes: [{ id: "step", command: "true" }] },
  });
  return { host, workflow: made.body.data.id as string };
}

const inviteTo = (host: Person, email: string) =>
  host.api("POST", `/auth/teams/${host.team}/invitations`, { email, role: "viewer" });

test("somebody who accepts an invitation is in its team, also in a tab of their own team", async () => {
  const { host } = await lab("Wombat");
  const dee = await harness.person("Dee Guest");
  const { page } = dee;
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("button", { name: "Team: Dee Guest's team" }).waitFor();
  await inviteTo(host, dee.email);
  await page.goto(`${harness.url}/invitations/${await harness.invitation(dee.email)}`);
  await page.getByRole("button", { name: "Join the team" }).click();
  await page.getByText("You joined Wombat lab as viewer.").waitFor();
  await page.getByRole("button", { name: "Team: Wombat lab" }).waitFor();
  await page.getByRole("link", { name: "Wombat counts" }).waitFor();
  expect(page.url()).toBe(`${harness.url}/workflows`);
  const tab = await dee.context.newPage();
  await tab.goto(harness.url);
  await tab.getByRole("button", { name: "Team: Wombat lab" }).waitFor();
  calm(page);
});

test("somebody who joins a team that cannot be shown yet stays on the page, and tries again", async () => {
  const { host } = await lab("Kiwi");
  const gil = await harness.person("Gil Guest");
  const { page } = gil;
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("button", { name: "Team: Gil Guest's team" }).waitFor();
  await inviteTo(host, gil.email);
  let away = true;
  await page.route("**/api/me", (route, request) =>
    away && request.headers()["x-team-id"] === host.team
      ? route.fulfill({
          status: 403,
          contentType: "application/json",
          body: JSON.stringify({ success: false, error: "the team is busy", code: "forbidden", requestId: "r" }),
        })
      : route.continue(),
  );
  await page.goto(`${harness.url}/invitations/${await harness.invitation(gil.email)}`);
  await page.getByRole("button", { name: "Join the team" }).click();
  await page.getByText("The team is busy.").waitFor();
  expect(new URL(page.url()).pathname).toBe(`/team/joined/${host.team}`);
  away = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("You joined Kiwi lab as viewer.").waitFor();
  await page.getByRole("button", { name: "Team: Kiwi lab" }).waitFor();
});

test("an invitation is sent again only where the server sends email", async () => {
  const host = await harness.person("Hos Tess");
  await inviteTo(host, "late@example.org");
  const { page } = host;
  await page.goto(`${harness.url}/team`);
  await page.getByRole("button", { name: "Revoke the invitation for late@example.org" }).waitFor();
  await page.getByRole("button", { name: "Send again to late@example.org" }).waitFor({ state: "detached" });
  calm(page);
});

test("somebody who signs up by an invitation begins in its team", async () => {
  const { host } = await lab("Dingo");
  await inviteTo(host, "new.comer@example.org");
  const { page } = await harness.visitor();
  await page.goto(`${harness.url}/invitations/${await harness.invitation("new.comer@example.org")}`);
  await page.getByRole("link", { name: "Create account" }).click();
  await page.getByLabel("Name").fill("New Comer");
  await page.getByLabel("Password", { exact: true }).fill("correct horse battery");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByText("You joined Dingo lab as viewer.").waitFor();
  await page.getByRole("link", { name: "Dingo counts" }).waitFor();
  calm(page);
});

test("a link into another team of mine opens in that team, and says so", async () => {
  const { host, workflow } = await lab("Possum");
  const run = (await host.api("POST", "/api/runs", { workflowId: workflow })).body.data.runId;
  const sweepable = await host.api("POST", "/api/workflows", {
    name: "Possum sweep",
    definition: { parameters: { q: { type: "integer", default: 1 } }, nodes: [{ id: "step", command: "true" }] },
  });
  const sweep = (await host.api("POST", "/api/sweeps", { workflowId: sweepable.body.data.id, vary: { q: [1, 2] } }))
    .body.data.sweepId;
  const put = (
    await host.api("POST", "/api/files/presign", { filename: "possum.txt", contentType: "text/plain", size: 5 })
  ).body.data;
  await fetch(put.url, { method: "PUT", headers: { "Content-Type": "text/plain" }, body: "reads" });
  await inviteTo(host, "ed.linked@example.org");
  const ed = await harness.person("Ed Linked", await harness.invitation("ed.linked@example.org"));
  const own = (await ed.api("GET", "/auth/teams")).body.data.find((each: Json) => each.role === "owner");
  await ed.api("POST", `/auth/teams/${own.id}/activate`);
  const { page } = ed;
  const links = [
    [`/workflows/${workflow}`, "workflow", page.getByRole("heading", { name: "Possum counts" })],
    [`/runs/${run}?tab=log`, "run", page.getByRole("heading", { name: /Possum counts/ })],
    [`/runs/sweeps/${sweep}`, "sweep", page.getByRole("heading", { name: "Sweep of Possum sweep" })],
    [`/runs?workflow=${workflow}`, "workflow", page.getByRole("link", { name: /Possum counts/ }).first()],
    [`/files?preview=${encodeURIComponent(put.key)}`, "file", page.getByRole("dialog", { name: "possum.txt" })],
    [`/workflows/${workflow}/schedules`, "workflow", page.getByRole("heading", { name: "Schedules of Possum counts" })],
    [`/launch?workflow=${workflow}`, "workflow", page.getByRole("dialog", { name: "Run" })],
  ] as const;
  for (const [path, kind, shown] of links) {
    await page.goto(`${harness.url}/workflows`);
    await page.evaluate(() => sessionStorage.clear());
    await page.goto(harness.url + path);
    await page.getByText(`Switched to Possum lab, the team of this ${kind}.`).waitFor();
    await shown.waitFor();
    expect(page.url()).toBe(harness.url + path);
  }
  // A link of a mail names the team.
  await page.goto(`${harness.url}/notifications?team=${own.id}`);
  await page.getByRole("button", { name: "Team: Ed Linked's team" }).waitFor();
  expect(page.url()).toBe(`${harness.url}/notifications`);
  await page.goto(`${harness.url}/billing?team=${host.team}`);
  await page.getByRole("button", { name: "Team: Possum lab" }).waitFor();
  // Back to where one was: that is the other team again.
  const mine = (
    await ed.api("POST", "/api/workflows", { name: "My own", definition: { nodes: [{ id: "a", command: "true" }] } })
  ).body.data.id;
  await page.goto(`${harness.url}/workflows/${mine}`);
  await page.getByText("Switched to Ed Linked's team, the team of this workflow.").waitFor();
  await page.goto(`${harness.url}/workflows/wf_nothing`);
  await page.getByText("No such workflow").waitFor();
  calm(page);
});
