import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, type Json, look, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

const definition = {
  version: 1,
  parameters: { factor: { type: "integer", default: 1 }, hidden: { type: "string", default: "unseen" } },
  nodes: [
    {
      id: "double",
      name: "Double",
      type: "task",
      command: 'echo "$((PARAM_factor * 2))" > n.txt',
      outputs: { n: { path: "n.txt" } },
    },
  ],
  edges: [],
};

const runsOf = async (person: Person): Promise<Json[]> => (await person.api("GET", "/api/runs")).body.data;

test("a sweep from the run dialog, as a table, two of its runs compared, and one shared", async () => {
  const ada = await harness.person("Ada Field");
  const { page } = ada;
  await page.goto(`${harness.url}/runs/sweeps`);
  await page.getByText("No sweeps yet").waitFor();
  const made = await ada.api("POST", "/api/workflows", { name: "Doubling", definition });
  await page.goto(`${harness.url}/launch?workflow=${made.body.data.id}`);
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Run a sweep").click();
  await dialog.getByRole("checkbox", { name: "Vary factor" }).check();
  await dialog.getByRole("textbox", { name: "Values of factor" }).fill("3, 10\n2");
  await dialog.getByText("Name, note and tags").click();
  await dialog.getByRole("textbox", { name: "Name" }).fill("Three factors");
  await look(page, "sweep-dialog");
  await dialog.getByRole("button", { name: /^Start/ }).click();

  await page.waitForURL(/\/runs\/sweeps\/swp_/);
  await page.getByRole("heading", { level: 1, name: "Three factors" }).waitFor();
  await until("its runs have completed", async () =>
    (await runsOf(ada)).every((run) => run.status === "completed") ? true : null,
  );
  await page.getByRole("checkbox", { name: "double.n" }).check();
  const values = page.locator("tbody td:last-child");
  await until("the outputs are there", async () =>
    (await values.allTextContents()).join(" ") === "6 20 4" ? true : null,
  );
  await page.getByRole("button", { name: "double.n" }).click();
  await until("they are sorted as numbers", async () =>
    (await values.allTextContents()).join(" ") === "4 6 20" ? true : null,
  );
  await look(page, "sweep-table");

  await page.goto(`${harness.url}/runs`);
  await page.getByRole("link", { name: "Sweeps" }).click();
  await page.waitForURL(/\/runs\/sweeps$/);
  await page.getByRole("row", { name: /Three factors.* factor 3/ }).waitFor();
  expect(await page.getByRole("link", { name: "Help on this page" }).getAttribute("href")).toBe(
    "/help/runs#several-at-once",
  );
  await look(page, "sweeps");
  await page.getByRole("link", { name: "Three factors" }).click();
  await page.waitForURL(/\/runs\/sweeps\/swp_/);

  await page.goto(`${harness.url}/runs`);
  for (const name of ["factor=2", "factor=10"]) {
    await page.getByRole("checkbox", { name: new RegExp(name) }).check();
  }
  await page.getByRole("link", { name: "Compare" }).click();
  await page.waitForURL(/\/runs\/compare\?a=run_/);
  const row = page.getByRole("row", { name: /^factor / });
  await row.waitFor();
  expect((await row.getByRole("cell").allTextContents()).slice(1).join(" ")).toContain("10");
  await page.getByText("Both runs used the same definition.").waitFor();
  await page.getByRole("row", { name: "Double · n · n.txt" }).waitFor();
  await look(page, "compare-runs");

  const [newest] = await runsOf(ada);
  await page.goto(`${harness.url}/runs/${newest.id}`);
  await page.getByRole("button", { name: "Share results…" }).click();
  await page.getByRole("dialog").getByRole("checkbox", { name: "factor" }).check();
  await page.getByRole("dialog").getByRole("button", { name: "Create link" }).click();
  const link = (await page.getByRole("dialog").locator("code").first().textContent()) ?? "";
  expect(link).toContain("/results#mrr_");
  await look(page, "share-results");

  const visitor = await harness.visitor();
  await visitor.page.goto(link);
  await visitor.page.getByRole("link", { name: "Download n.txt" }).waitFor();
  await look(visitor.page, "shared-results");
  expect(await visitor.page.getByRole("main").textContent()).not.toMatch(/unseen|PARAM_factor/);
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByText("revoked").waitFor();
  await visitor.page.reload();
  await visitor.page.getByText("It was revoked.").waitFor();
  calm(page);
});

test("what a failed step left behind is on the run's page", async () => {
  const ada = await harness.person("Ada Marsh");
  const { page } = ada;
  const made = await ada.api("POST", "/api/workflows", {
    name: "Breaking",
    definition: {
      version: 1,
      nodes: [{ id: "b", name: "Break", type: "task", command: "echo half > half.txt; exit 3" }],
      edges: [],
    },
  });
  const started = await ada.api("POST", "/api/runs", { workflowId: made.body.data.id });
  const id = started.body.data.runId;
  await until("the folder is kept", async () =>
    (await ada.api("GET", `/api/runs/${id}/attempts`)).body.data.length > 0 ? true : null,
  );
  await page.goto(`${harness.url}/runs/${id}`);
  await page.getByText("Files the failed step left behind").click();
  await page.getByRole("link", { name: "half.txt" }).waitFor();
  await look(page, "failed-folder");
  calm(page);
});
