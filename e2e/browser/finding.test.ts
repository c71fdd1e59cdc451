import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible, calm, Harness, look, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open("--sandbox", "none");
});
afterAll(() => harness?.close());

/** started is the runs of a new workflow with one step, of the given names. */
async function started({ api }: Person, workflow: string, command: string, names: string[]): Promise<string[]> {
  const made = await api("POST", "/api/workflows", {
    name: workflow,
    definition: { nodes: [{ id: "step", command }] },
  });
  const runs: string[] = [];
  for (const name of names) {
    const run = await api("POST", "/api/runs", { workflowId: made.body.data.id, name });
    runs.push(run.body.data.runId);
  }
  return runs;
}

function ended({ api }: Person, run: string): Promise<string> {
  return until(`${run} has ended`, async () => {
    const { body } = await api("GET", `/api/runs/${run}`);
    return ["completed", "failed", "cancelled"].includes(body.status) && body.status;
  });
}

const row = (page: Person["page"], text: string) => page.getByRole("row").filter({ hasText: text });

test("runs that are ticked are tagged, written to a table, and deleted together", async () => {
  const person = await harness.person("Bulk Ben");
  const { page, api } = person;
  const [alpha = "", beta = "", gamma = ""] = await started(person, "Counts", "true", ["alpha", "beta", "gamma"]);
  for (const run of [alpha, beta, gamma]) expect(await ended(person, run)).toBe("completed");

  await page.goto(`${harness.url}/runs`);
  for (const name of ["alpha", "beta"]) await row(page, name).getByRole("checkbox").check();
  await accessible(page, "runs that are ticked");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "CSV" }).click();
  const table = readFileSync(await (await download).path(), "utf8");
  expect([alpha, beta, gamma].map((id) => table.includes(id))).toEqual([true, true, false]);

  await page.getByRole("button", { name: "Tag", exact: true }).click();
  await page.getByRole("textbox", { name: "Tags to add" }).fill("pilot grant:2026");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await row(page, "beta").getByText("grant:2026").waitFor();
  const tags = async (run: string) => (await api("GET", `/api/runs/${run}`)).body.tags;
  expect([await tags(alpha), await tags(beta), await tags(gamma)]).toEqual([
    ["pilot", "grant:2026"],
    ["pilot", "grant:2026"],
    [],
  ]);

  for (const name of ["alpha", "gamma"]) await row(page, name).getByRole("checkbox").check();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("button", { name: "Delete 2 runs" }).click();
  await row(page, "alpha").waitFor({ state: "detached" });
  await row(page, "gamma").waitFor({ state: "detached" });
  await row(page, "beta").waitFor();
  expect((await api("GET", "/api/runs")).body.data.map((run: { id: string }) => run.id)).toEqual([beta]);
  calm(page);
});

test("runs that are ticked are cancelled together, and those that have ended stay as they are", async () => {
  const person = await harness.person("Cancel Cleo");
  const { page } = person;
  const [done = ""] = await started(person, "Quick", "true", ["already done"]);
  expect(await ended(person, done)).toBe("completed");
  const going = await started(person, "Slow", "exec sleep 600", ["first", "second"]);
  await page.goto(`${harness.url}/runs`);
  for (const name of ["already done", "first", "second"]) await row(page, name).getByRole("checkbox").check();
  await page.getByRole("button", { name: "Cancel 2 runs" }).click();
  for (const run of going) expect(await ended(person, run)).toBe("cancelled");
  expect(await ended(person, done)).toBe("completed");
  calm(page);
});

test("a filter is kept, chosen again, and dropped; nobody else sees it", async () => {
  const person = await harness.person("Filter Fay");
  const { page, api } = person;
  const [broken = ""] = await started(person, "Breaks", "exit 3", ["broken"]);
  const [fine = ""] = await started(person, "Works", "true", ["fine"]);
  expect([await ended(person, broken), await ended(person, fine)]).toEqual(["failed", "completed"]);

  await page.goto(`${harness.url}/runs`);
  await page.getByRole("combobox", { name: "State" }).selectOption("failed");
  await page.getByRole("searchbox", { name: "Search the list" }).fill("broken");
  await row(page, "fine").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Save this filter" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Name" }).fill("What broke");
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await dialog.waitFor({ state: "hidden" });

  await page.goto(`${harness.url}/runs?favorites=true`);
  await page.getByText("No runs match these filters.").waitFor();
  await page.getByRole("button", { name: "What broke", exact: true }).click();
  await row(page, "broken").waitFor();
  expect(await page.getByRole("combobox", { name: "State" }).inputValue()).toBe("failed");
  expect(await row(page, "fine").count()).toBe(0);
  await accessible(page, "a kept filter");

  const other = await harness.person("Other Otto");
  expect((await other.api("GET", "/api/me/filters")).body.data).toEqual([]);
  await page.getByRole("button", { name: "Delete the filter What broke" }).click();
  await until("the filter is gone", async () => (await api("GET", "/api/me/filters")).body.data.length === 0);
  calm(page);
});

test("a run that is marked is among the favorites of who marked it", async () => {
  const person = await harness.person("Star Stella");
  const { page, api } = person;
  const [first = "", second = ""] = await started(person, "Marks", "true", ["kept one", "other one"]);
  for (const run of [first, second]) await ended(person, run);
  await page.goto(`${harness.url}/runs`);
  await row(page, "kept one")
    .getByRole("button", { name: /is a favorite/ })
    .click();
  await until("it is marked", async () => (await api("GET", "/api/favorites")).body.data.runs[0] === first);
  await page.getByRole("checkbox", { name: "Only favorites" }).check();
  await row(page, "other one").waitFor({ state: "detached" });
  await row(page, "kept one").waitFor();
  calm(page);
});

test("the palette finds runs by what they were given, steps, and files", async () => {
  const { page, api } = await harness.person("Pal Ette");
  const made = await api("POST", "/api/workflows", {
    name: "Variants",
    definition: {
      nodes: [{ id: "sort", name: "Sort the quokka reads", command: "true" }],
      parameters: { genome: { type: "string" } },
    },
  });
  const run = await api("POST", "/api/runs", {
    workflowId: made.body.data.id,
    name: "a run of it",
    parameters: { genome: "quokka38" },
  });
  const bytes = "reads";
  const { body: put } = await api("POST", "/api/files/presign", {
    filename: "quokka.txt",
    contentType: "text/plain",
    size: bytes.length,
  });
  await fetch(put.data.url, { method: "PUT", headers: { "Content-Type": "text/plain" }, body: bytes });

  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("heading", { name: "Workflows", level: 1 }).waitFor();
  const found = async (name: RegExp) => {
    await page.keyboard.press("Control+k");
    await page.getByPlaceholder("Search workflows").fill("quokka");
    await page.getByRole("option", { name }).click();
  };
  await found(/a run of it/);
  await page.waitForURL(`**/runs/${run.body.data.runId}`);
  await found(/Sort the quokka reads/);
  await page.waitForURL(`**/workflows/${made.body.data.id}?node=sort`);
  await found(/quokka\.txt/);
  await page.waitForURL(/\/files\?q=quokka\.txt/);
  await row(page, "quokka.txt").waitFor();
  calm(page);
});

test("the palette finds workflows and runs in a tab that has listed neither", async () => {
  const person = await harness.person("Pal Fresh");
  const { page } = person;
  const [run = ""] = await started(person, "Counts of numbats", "exit 3", ["first try"]);
  expect(await ended(person, run)).toBe("failed");
  await page.goto(`${harness.url}/account`);
  await page.getByRole("heading", { name: "Account", level: 1 }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("option", { name: "Counts of numbats", exact: true }).waitFor();
  const answers = ["workflows", "runs"].map((kind) => page.waitForResponse(`**/api/${kind}?q=numbat*`));
  await page.getByPlaceholder("Search workflows").fill("numbat");
  await Promise.all(answers);
  await page.getByRole("option", { name: /^first try\s*Counts of numbats #1 · failed · just now$/ }).waitFor();
  await look(page, "palette");
  await page.getByRole("option", { name: "Counts of numbats", exact: true }).click();
  await page.waitForURL(/\/workflows\/wf_/);
  calm(page);
});
