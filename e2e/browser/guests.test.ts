import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, type Json, look, type Person } from "./harness.ts";

// The server has one vCPU and no GPU.
let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open("--capacity", "vcpu=1,ramGb=4");
});
afterAll(() => harness?.close());

async function workflow(person: Person, body: Json): Promise<string> {
  const made = await person.api("POST", "/api/workflows", body);
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  return made.body.data.id;
}

const waits = {
  name: "Slow birds",
  definition: {
    version: 1,
    nodes: [{ id: "wait", name: "Wait for birds", type: "task", command: "sleep 3600", position: { x: 0, y: 0 } }],
  },
};

/** join opens a share link, as a guest. */
async function join(page: Page, link: string): Promise<void> {
  await page.goto(link.replace(/^https?:\/\/[^/]+/, harness.url));
  await page.getByLabel(/Your name/).fill("Ed Guest");
  await page.getByRole("button", { name: "Open workflow" }).click();
}

test("a guest who edits starts a run, and follows it by a link to its results", async () => {
  const ada = await harness.person("Ada Reed");
  const id = await workflow(ada, waits);
  await ada.page.goto(`${harness.url}/workflows/${id}`);
  await ada.page.getByRole("button", { name: "Share" }).click();
  const dialog = ada.page.getByRole("dialog");
  await dialog.getByLabel("Guests can").selectOption("editor");
  await dialog.getByLabel(/link to the results of each run/).check();
  await look(ada.page, "share-with-results");
  await dialog.getByRole("button", { name: "Create link" }).click();
  const link = await dialog.getByText(/join#mri_/).innerText();

  const { page, context } = await harness.visitor();
  await join(page, link);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.getByText("Run accepted").waitFor();
  await page.getByRole("button", { name: "Copy link to results" }).waitFor();
  await look(page, "guest-run-accepted");
  const opened = context.waitForEvent("page");
  await page.getByRole("link", { name: "Open results" }).click();
  const results = await opened;
  await results.getByText("Shared by Ada Reed.").waitFor();
  await results
    .getByRole("heading", { level: 1 })
    .getByText(/Queued|Running/)
    .waitFor();

  // The page follows the run by itself.
  const { id: runId } = (await ada.api("GET", "/api/runs")).body.data[0];
  expect((await ada.api("POST", `/api/runs/${runId}/cancel`)).status).toBe(200);
  await results.getByRole("heading", { level: 1 }).getByText("Cancelled").waitFor();

  // Whoever revokes the share link takes the results back, too.
  const invites = await ada.api("GET", `/api/collab/invites?workflowId=${id}`);
  expect((await ada.api("DELETE", `/api/collab/invites?id=${invites.body.data[0].id}`)).status).toBe(200);
  await results.reload();
  await results.getByText("This link no longer works").waitFor();
  calm(page);
  calm(ada.page);
});

/** sizesOf are the sizes of a dialog: the one that is chosen, and those that cannot be. */
async function sizesOf(page: Page): Promise<{ chosen: string; disabled: string[] }> {
  const group = page.getByRole("dialog").getByRole("group", { name: "Size" });
  await group.getByText("Not available on this server").waitFor();
  await group.getByText("Too large for this server").first().waitFor();
  const read = (selector: string) =>
    group
      .locator("label", { has: page.locator(selector) })
      .locator(":scope > span:first-of-type")
      .allInnerTexts();
  const [chosen = ""] = await read("input:checked");
  return { chosen, disabled: await read("input:disabled") };
}

const onlySmall = { chosen: "Small", disabled: ["Standard", "Large", "Huge", "GPU"] };

test("guests are offered the sizes that the server has, whatever their browser is signed in to", async () => {
  const ada = await harness.person("Ada Finch");
  const id = await workflow(ada, waits);
  const made = await ada.api("POST", "/api/collab/invites", { workflowId: id, role: "editor" });
  const bo = await harness.person("Bo Finch");
  const executors: string[] = [];
  for (const { page } of [await harness.visitor(), bo]) {
    page.on("request", (request) => {
      if (request.url().includes("/api/executors")) executors.push(request.url());
    });
    await join(page, made.body.data.link);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    expect(await sizesOf(page)).toEqual(onlySmall);
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.getByText("Run accepted").waitFor();
    calm(page);
  }
  expect(executors).toEqual([]);
});

test("members are offered the sizes that the server has, also for a schedule", async () => {
  const ada = await harness.person("Ada Wren");
  const { page } = ada;
  const id = await workflow(ada, waits);
  await page.goto(`${harness.url}/workflows/${id}?run=1`);
  expect(await sizesOf(page)).toEqual(onlySmall);
  await page.goto(`${harness.url}/workflows/${id}/schedules`);
  await page.getByRole("button", { name: "New schedule" }).click();
  expect(await sizesOf(page)).toEqual(onlySmall);
  await look(page, "schedule-sizes");
  await page.getByRole("button", { name: "Create schedule" }).click();
  await page.getByRole("listitem").getByText("Weekdays at 6:00").waitFor();
  calm(page);
});
