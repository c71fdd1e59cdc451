// Small things that were wrong, each seen as somebody meets it.
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, example, Harness, type Json, type Person, until } from "./harness.ts";

let harness: Harness;
let ada: Person;
beforeAll(async () => {
  harness = await Harness.open();
  ada = await harness.person("Ada Detail");
});
afterAll(() => harness?.close());

async function workflow(body: Json): Promise<string> {
  const made = await ada.api("POST", "/api/workflows", body);
  expect(made.status).toBe(201);
  return made.body.data.id;
}

async function finished(workflowId: string): Promise<string> {
  const started = await ada.api("POST", "/api/runs", { workflowId });
  expect(started.status).toBe(202);
  const { runId } = started.body.data;
  await until(
    "the run has ended",
    async () => (await ada.api("GET", `/api/runs/${runId}`)).body.status === "completed",
  );
  return runId;
}

test("a rename is one change in the history", async () => {
  const { page } = ada;
  const id = await workflow(example("monte-carlo"));
  await finished(id); // what has run is a version of its own
  const { definition } = (await ada.api("GET", `/api/workflows/${id}`)).body.data;
  definition.nodes[0].name = "Renamed";
  expect((await ada.api("PUT", `/api/workflows/${id}`, { definition })).status).toBe(200);
  await page.goto(`${harness.url}/workflows/${id}?panel=history`);
  await page.locator(".react-flow__node", { hasText: "Renamed" }).waitFor();
  await page.getByRole("button", { name: /^Version 1/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.locator("summary", { hasText: "name" }).waitFor();
  const lines = (await dialog.locator("pre > span").allTextContents()).filter((line) => /^[+-]/.test(line));
  expect(lines).toHaveLength(2);
  expect(lines.every((line) => line.includes('"name"'))).toBe(true);
  calm(page);
});

test("what a step in between made is listed when the step is chosen", async () => {
  const { page } = ada;
  const node = (id: string, x: number) => ({
    id,
    name: id,
    type: "task",
    position: { x, y: 0 },
    command: `echo ${id} > ${id}.txt`,
    outputs: { out: { path: `${id}.txt` } },
  });
  const runId = await finished(
    await workflow({
      name: "In between",
      definition: {
        version: 1,
        nodes: [node("first", 0), node("last", 400)],
        edges: [{ id: "e", source: "first", sourceHandle: "out", target: "last", targetHandle: "out" }],
        outputs: { end: { from: "last.out" } },
      },
    }),
  );
  await page.goto(`${harness.url}/runs/${runId}?tab=outputs`);
  await page.getByRole("button", { name: "last.txt", exact: true }).waitFor();
  expect(await page.getByRole("button", { name: "first.txt", exact: true }).count()).toBe(0);
  await page.locator('.react-flow__node[data-id="first"]').click();
  await page.getByRole("button", { name: "first.txt", exact: true }).waitFor();
  calm(page);
});

test("YAML is imported, and an error that is found everywhere is said once", async () => {
  const { page } = ada;
  const load = async (name: string, text: string) => {
    await page.goto(`${harness.url}/workflows`);
    await page.getByRole("button", { name: "Import" }).click();
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Drop JSON or YAML files here" }).click();
    await (await chooser).setFiles([{ name, mimeType: "application/yaml", buffer: Buffer.from(text) }]);
  };
  await load("from yaml.yaml", "version: 1\nnodes:\n  - {id: a, name: Said in YAML, type: task, command: 'true'}\n");
  await page.waitForURL(/\/workflows\/wf_/);
  await page.locator(".react-flow__node", { hasText: "Said in YAML" }).waitFor();
  const nodes = Array.from({ length: 500 }, (_, at) => ({ id: `n${at}`, type: "task", command: "true", nonsense: 1 }));
  await load("wrong.json", JSON.stringify({ version: 1, nodes }));
  await page.getByRole("dialog").getByText("other places").waitFor();
  expect(await page.getByRole("dialog").getByText("nonsense").count()).toBeLessThan(8);
  calm(page);
});

test("the question mark opens the palette, empty", async () => {
  const { page } = ada;
  await page.goto(`${harness.url}/runs`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.keyboard.press("?");
  const search = page.getByPlaceholder(/Search workflows/);
  await search.waitFor();
  await page.keyboard.type("bil");
  expect(await search.inputValue()).toBe("bil");
  calm(page);
});

test("a token is a member's unless told", async () => {
  const { page } = ada;
  await page.goto(`${harness.url}/account`);
  await page.getByRole("button", { name: "New token" }).click();
  expect(await page.getByLabel("Role").inputValue()).toBe("member");
  calm(page);
});

test("billing fits a small screen, with what was spent and paid", async () => {
  const { page } = ada;
  await page.goto(`${harness.url}/billing`);
  await page
    .getByRole("button", { name: /^Buy for/ })
    .first()
    .click();
  await page.getByRole("button", { name: /Pay/ }).click();
  await page.getByRole("link", { name: "Back to Millrace" }).click();
  await page.getByText(/credits added/).waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  for (const days of [7, 30, 90, 180]) {
    await page.goto(`${harness.url}/billing?days=${days}`);
    await page.getByRole("region", { name: "Invoices" }).waitFor();
    await page.getByRole("heading", { name: "Daily usage" }).waitFor();
    const wide = await page.evaluate(() =>
      [...document.querySelectorAll("body *")]
        .filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".overflow-x-auto"))
        .map((each) => `${each.tagName} ${each.className}`),
    );
    expect(wide).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  }
  calm(page);
});
