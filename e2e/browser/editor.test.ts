import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, example, Harness, type Json, look, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

async function workflow(person: Person, body: Json): Promise<string> {
  const made = await person.api("POST", "/api/workflows", body);
  expect(made.status).toBe(201);
  return made.body.data.id;
}

async function open(page: Page, id: string): Promise<void> {
  await page.goto(`${harness.url}/workflows/${id}`);
  await page.locator(".react-flow__node").first().waitFor();
  await page.getByText("Saved", { exact: true }).waitFor();
}

const node = (page: Page, name: string) => page.locator(".react-flow__node", { hasText: name });
const canvas = (page: Page) => page.getByRole("region", { name: "Canvas" });

async function definition(person: Person, id: string): Promise<Json> {
  return (await person.api("GET", `/api/workflows/${id}`)).body.data.definition;
}

test("what is edited is saved by itself, and undone by its author", async () => {
  const ada = await harness.person("Ada Moss");
  const id = await workflow(ada, example("word-count"));
  const { page } = ada;
  await open(page, id);

  await node(page, "Count one text").click();
  await page.getByLabel("Name", { exact: true }).fill("Count words");
  await page.getByLabel("Name", { exact: true }).press("Enter");
  await node(page, "Count words").waitFor();
  await until("the name is saved", async () => (await definition(ada, id)).nodes[0].name === "Count words");
  await page.getByText("Saved", { exact: true }).waitFor();

  // A command is typed into the shared text.
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# typed here");
  await until("the command is saved", async () =>
    (await definition(ada, id)).nodes[0].command.endsWith("# typed here"),
  );

  // A step from the palette, and gone again by undo.
  await page.getByRole("button", { name: "Add a step" }).click();
  await page
    .getByRole("region", { name: "Steps to add" })
    .getByRole("button", { name: /Python step/ })
    .click();
  await node(page, "Python step").waitFor();
  await until("the step is saved", async () => (await definition(ada, id)).nodes.length === 3);
  await page.getByRole("button", { name: "Undo your last edit" }).click();
  await node(page, "Python step").waitFor({ state: "detached" });
  await until("the step is gone", async () => (await definition(ada, id)).nodes.length === 2);
  await page.getByRole("button", { name: /^Redo/ }).click();
  await node(page, "Python step").waitFor();

  // Deleting a chosen step by key takes its lines along.
  await node(page, "Add up").click();
  await canvas(page).press("Delete");
  await node(page, "Add up").waitFor({ state: "detached" });
  await until("the line is gone", async () => (await definition(ada, id)).edges.length === 0);
  calm(page);
});

test("copy and paste, tidy-up, the code view and the history", async () => {
  const ada = await harness.person("Ada Reed");
  const id = await workflow(ada, example("branches"));
  const { page } = ada;
  await open(page, id);
  const before = (await definition(ada, id)).nodes.length;

  await ada.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await canvas(page).press("Control+a");
  await page.keyboard.press("Control+c");
  await page.keyboard.press("Control+v");
  await until("the copies are saved", async () => (await definition(ada, id)).nodes.length === 2 * before);
  await page.getByRole("button", { name: "Tidy up" }).click();
  await page.getByRole("button", { name: "Undo your last edit" }).click();
  await page.getByRole("button", { name: "Undo your last edit" }).click();
  await until("the copies are gone", async () => (await definition(ada, id)).nodes.length === before);

  await page.getByRole("tab", { name: "Code" }).click();
  await page.locator(".cm-content", { hasText: "version: 1" }).waitFor();
  await page.getByLabel("Format").selectOption("json");
  await page.locator(".cm-content", { hasText: '"version": 1' }).waitFor();

  await page.getByRole("tab", { name: "History" }).click();
  await page
    .getByRole("button", { name: /^Version/ })
    .first()
    .click();
  await page.getByRole("dialog").getByRole("button", { name: "Restore this version" }).waitFor();
  await page.keyboard.press("Escape");
  calm(page);
});

test("problems lead to their step, and a run waits for them", async () => {
  const ada = await harness.person("Ada Fern");
  const body = example("word-count");
  body.definition.nodes[1].command = "";
  const id = await workflow(ada, body);
  const { page } = ada;
  await open(page, id);
  await page.getByRole("tab", { name: /Problems 1/ }).click();
  expect(await page.getByRole("button", { name: "Run", exact: true }).getAttribute("aria-disabled")).toBe("true");
  await page
    .getByRole("tabpanel")
    .getByRole("button", { name: /Add up/ })
    .click();
  await page.getByRole("tab", { name: "Step", selected: true }).waitFor();
  expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("Add up");
  calm(page);
});

test("two people edit together: they see one another, and undo only their own", async () => {
  const ada = await harness.person("Ada Vale");
  const id = await workflow(ada, example("word-count"));
  await harness.verify(ada.email);
  const invited = await ada.api("POST", "/api/team/invite", { email: "bo.lund@example.org", role: "member" });
  expect(invited.status).toBe(201);
  const bo = await harness.person("Bo Lund", await harness.invitation("bo.lund@example.org"));
  await bo.api("POST", `/auth/teams/${ada.team}/activate`);
  await open(ada.page, id);
  await open(bo.page, id);
  await ada.page.getByRole("button", { name: "Go to Bo Lund" }).waitFor();
  await bo.page.getByRole("button", { name: "Go to Ada Vale" }).waitFor();

  await node(ada.page, "Add up").click();
  await node(bo.page, "Add up").getByText("Ada Vale").waitFor();

  await ada.page.getByLabel("Name", { exact: true }).fill("Ada's step");
  await ada.page.getByLabel("Name", { exact: true }).press("Enter");
  await node(bo.page, "Ada's step").waitFor();
  await node(bo.page, "Count one text").click();
  await bo.page.getByLabel("Name", { exact: true }).fill("Bo's step");
  await bo.page.getByLabel("Name", { exact: true }).press("Enter");
  await node(ada.page, "Bo's step").waitFor();

  // Where Bo is in a command is seen there, and gone when he leaves it.
  await node(ada.page, "Bo's step").click();
  await bo.page.locator(".cm-content").click();
  await bo.page.keyboard.press("Control+Home");
  await bo.page.keyboard.press("Shift+End");
  await ada.page.locator(".cm-ySelectionInfo", { hasText: "Bo Lund" }).waitFor({ state: "attached" });
  await look(ada.page, "editor-carets");
  await bo.page.getByLabel("Name", { exact: true }).click();
  await ada.page.locator(".cm-ySelectionInfo").waitFor({ state: "detached" });
  await node(ada.page, "Ada's step").click();

  // Bo's undo takes back Bo's edit, although Ada's came in between.
  await bo.page.getByRole("button", { name: "Undo your last edit" }).click();
  await node(ada.page, "Count one text").waitFor();
  await node(bo.page, "Ada's step").waitFor();
  await until("both agree with the server", async () => {
    const names = (await definition(ada, id)).nodes.map((each: Json) => each.name);
    return names.includes("Ada's step") && names.includes("Count one text");
  });
  await look(ada.page, "editor-together");

  // A lesser role holds at once: Bo stays, and can only look.
  const { members } = (await ada.api("GET", `/auth/teams/${ada.team}/members`)).body.data;
  const { id: boId } = members.find((each: Json) => each.name === "Bo Lund");
  expect((await ada.api("PATCH", `/auth/teams/${ada.team}/members/${boId}`, { role: "viewer" })).status).toBe(200);
  await bo.page.getByText("View only").waitFor();
  await node(bo.page, "Ada's step").waitFor();
  calm(ada.page);
  calm(bo.page);
});

test("a viewer's gestures change nothing", async () => {
  const ada = await harness.person("Ada Holt");
  const id = await workflow(ada, example("word-count"));
  const made = await ada.api("POST", "/api/collab/invites", { workflowId: id, role: "viewer" });
  expect(made.status).toBe(201);
  const before = JSON.stringify(await definition(ada, id));
  const { page, context } = await harness.visitor();
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(made.body.data.link.replace(/^https?:\/\/[^/]+/, harness.url));
  await page.getByLabel(/Your name/).fill("Vi Guest");
  await page.getByRole("button", { name: "Open workflow" }).click();
  await node(page, "Add up").waitFor();
  await page.getByText("View only").waitFor();
  await page.getByText(/you can view this workflow/).waitFor();

  const at = await node(page, "Add up").boundingBox();
  await node(page, "Add up").click();
  if (!at) throw new Error("the step has no place");
  await page.mouse.move(at.x + 60, at.y + 20);
  await page.mouse.down();
  await page.mouse.move(at.x + 200, at.y + 150, { steps: 5 });
  await page.mouse.up();
  await node(page, "Count one text").click();
  for (const key of [
    "Delete",
    "Backspace",
    "Control+d",
    "Control+x",
    "Control+v",
    "Control+z",
    "Control+y",
    "a",
    "ArrowDown",
  ]) {
    await canvas(page).press(key);
  }
  expect(await page.getByRole("dialog").count()).toBe(0);
  expect(await page.getByLabel("Name", { exact: true }).isDisabled()).toBe(true);
  await page.locator(".cm-content").click();
  await page.keyboard.type("rm -rf");
  expect(await page.locator(".cm-content").innerText()).not.toContain("rm -rf");
  expect(await page.locator(".react-flow__node").count()).toBe(2);
  expect(JSON.stringify(await definition(ada, id))).toBe(before);
  await look(page, "guest-viewer");
  calm(page);
});

test("a guest who edits starts a run, and learns that it was accepted", async () => {
  const ada = await harness.person("Ada Marsh");
  const id = await workflow(ada, example("monte-carlo"));
  const made = await ada.api("POST", "/api/collab/invites", { workflowId: id, role: "editor" });
  const { page } = await harness.visitor();
  await page.goto(made.body.data.link.replace(/^https?:\/\/[^/]+/, harness.url));
  await page.getByLabel(/Your name/).fill("Ed Guest");
  await page.getByRole("button", { name: "Open workflow" }).click();
  await page.locator(".react-flow__node").first().waitFor();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.getByText("Run accepted").waitFor();
  const runs = await ada.api("GET", "/api/runs");
  expect(runs.body.data[0].startedBy).toMatchObject({ type: "guest", name: "Ed Guest" });

  // Taking the link back closes the room, calmly.
  await page.keyboard.press("Escape");
  expect((await ada.api("DELETE", `/api/collab/invites?id=${made.body.data.id}`)).status).toBe(200);
  await page.getByText("This link no longer works").waitFor();
  calm(page);
});

test("two thousand steps stay usable", async () => {
  const ada = await harness.person("Ada Plain");
  const nodes = Array.from({ length: 2000 }, (_, at) => ({
    id: `n${at}`,
    name: `Step ${at}`,
    type: "task",
    position: { x: (at % 50) * 320, y: Math.floor(at / 50) * 140 },
    command: "true",
    outputs: { out: { path: "out.txt" } },
  }));
  const edges = nodes
    .slice(1)
    .map((each, at) => ({ id: `e${at}`, source: `n${at}`, sourceHandle: "out", target: each.id, targetHandle: "out" }));
  const id = await workflow(ada, { name: "Two thousand", definition: { version: 1, nodes, edges } });
  const { page } = ada;
  await open(page, id);
  await page.keyboard.press("Control+f");
  await page.getByPlaceholder("Type to search").fill("Step 1999");
  await page.keyboard.press("Enter");
  await node(page, "Step 1999").waitFor();
  // Only what can be seen is there.
  await until("few are rendered", async () => (await page.locator(".react-flow__node").count()) < 60);
  await page.getByLabel("Name", { exact: true }).fill("The last");
  await page.getByLabel("Name", { exact: true }).press("Enter");
  await until("it is saved", async () =>
    (await definition(ada, id)).nodes.some((each: Json) => each.name === "The last"),
  );
  await look(page, "editor-large");
  // The map leads to where it is pressed.
  await page.getByRole("img", { name: "Map of the graph" }).click({ position: { x: 4, y: 42 } });
  await node(page, "Step 0").waitFor();
  calm(page);
});

test("the editor in light and dark, wide and narrow", async () => {
  const ada = await harness.person("Ada Lake");
  const id = await workflow(ada, example("fastq-quality"));
  await open(ada.page, id);
  await look(ada.page, "editor");
  await ada.page.locator(".react-flow__node").first().click();
  await ada.page.locator(".cm-content").waitFor();
  await look(ada.page, "editor-step");
  await ada.page.goto(`${harness.url}/workflows/${id}?run=true`);
  await ada.page.getByRole("dialog").getByText("credits/hour").waitFor();
  await look(ada.page, "run-dialog");
  calm(ada.page);
});
