// What people do with their hands in the editor: select, drag, fit, tidy up, paste,
// type, scroll. Nothing that they did not mean happens.
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible, calm, Harness, type Json, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

const task = (id: string, name: string, x: number, y = 0, more: Json = {}) => ({
  id,
  name,
  type: "task",
  position: { x, y },
  command: "true",
  ...more,
});

async function open(person: Person, definition: Json): Promise<string> {
  const made = await person.api("POST", "/api/workflows", {
    name: "Edited",
    definition: { version: 1, ...definition },
  });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  const { id } = made.body.data;
  await person.page.goto(`${harness.url}/workflows/${id}`);
  await person.page.getByText("Saved", { exact: true }).waitFor();
  return id;
}

async function definition(person: Person, id: string): Promise<Json> {
  return (await person.api("GET", `/api/workflows/${id}`)).body.data.definition;
}

const node = (page: Page, name: string) => page.locator(".react-flow__node", { hasText: name });
const canvas = (page: Page) => page.getByRole("region", { name: "Canvas" });
const command = (page: Page) => page.locator(".cm-content").first();

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

async function box(locator: Locator): Promise<Box> {
  const found = await locator.boundingBox();
  if (!found) throw new Error("it has no place");
  return found;
}

const apart = (a: Box, b: Box) =>
  a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;

/** free waits until every card is on the canvas and under none of its panels. */
async function free(page: Page, what: string, those = ".react-flow__node"): Promise<void> {
  const pane = await box(canvas(page));
  await until(what, async () => {
    const cards = await Promise.all((await page.locator(those).all()).map(box));
    const panels = await Promise.all(
      (
        await page
          .locator('[role=toolbar][aria-label=Canvas], [aria-label="Steps to add"], .react-flow__panel:visible')
          .all()
      ).map(box),
    );
    const inside = (card: Box) =>
      card.x >= pane.x &&
      card.y >= pane.y &&
      card.x + card.width <= pane.x + pane.width + 1 &&
      card.y + card.height <= pane.y + pane.height + 1;
    return cards.length > 0 && cards.every((card) => inside(card) && panels.every((panel) => apart(card, panel)));
  });
}

async function drag(page: Page, from: Box, dx: number, dy: number): Promise<void> {
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  await page.mouse.move(from.x + from.width / 2 + dx, from.y + from.height / 2 + dy, { steps: 6 });
  await page.mouse.up();
}

test("the panel starts at its top for another step", async () => {
  const ada = await harness.person("Ada Scroll");
  const { page } = ada;
  await open(ada, { nodes: [task("a", "First", 0), task("b", "Second", 400)] });
  await node(page, "First").click();
  await command(page).waitFor();
  const scroller = page.getByRole("complementary", { name: "Details" }).locator(".overflow-y-auto").first();
  await scroller.evaluate((element) => element.scrollTo(0, 1e6));
  expect(await scroller.evaluate((element) => element.scrollTop)).toBeGreaterThan(100);
  await node(page, "Second").click();
  await page.getByLabel("Name", { exact: true }).and(page.locator('[value="Second"]')).waitFor();
  expect(await scroller.evaluate((element) => element.scrollTop)).toBe(0);
  calm(page);
});

test("Escape in a command leaves the keyboard there, and Tab goes on to the next field", async () => {
  const ada = await harness.person("Ada Escape");
  const { page } = ada;
  await open(ada, { nodes: [task("a", "First", 0)] });
  await node(page, "First").click();
  await command(page).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.press("Escape");
  await page.keyboard.type(" grep runs");
  await page.getByText("true grep runs").waitFor();
  expect(new URL(page.url()).pathname).toMatch(/^\/workflows\//);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.closest(".cm-editor") === null)).toBe(true);
  expect(await command(page).innerText()).toBe("true grep runs");
  calm(page);
});

test("Escape in the large editor closes what is open in it, and not the editor", async () => {
  const ada = await harness.person("Ada Large");
  const { page } = ada;
  await open(ada, { parameters: { limit: { type: "integer", default: 1 } }, nodes: [task("a", "First", 0)] });
  await node(page, "First").click();
  await page.getByRole("button", { name: "Open in large editor" }).click();
  const dialog = page.getByRole("dialog", { name: "Command of First" });
  await dialog.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(" $PARAM_l");
  const suggestions = dialog.getByRole("listbox");
  await suggestions.waitFor();
  await page.keyboard.press("Escape");
  await suggestions.waitFor({ state: "detached" });
  await page.keyboard.press("Control+f");
  await dialog.getByRole("textbox", { name: "Find" }).fill("true");
  await page.keyboard.press("Escape");
  await dialog.getByRole("textbox", { name: "Find" }).waitFor({ state: "detached" });
  await page.keyboard.press("Control+End");
  await page.keyboard.press("Escape");
  await page.keyboard.type(" grep runs");
  await until("it is typed into the command", async () =>
    (await dialog.locator(".cm-content").innerText()).includes("true $PARAM_l grep runs"),
  );
  expect(new URL(page.url()).pathname).toMatch(/^\/workflows\//);
  // Tab goes on to the rest of the dialog, and from there Escape closes it.
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  calm(page);
});

test("dragging from afar moves the view and no step", async () => {
  const ada = await harness.person("Ada Afar");
  const { page } = ada;
  const id = await open(ada, { nodes: [task("a", "First", 0), task("b", "Second", 400)] });
  for (let at = 0; at < 12; at++) await page.getByRole("button", { name: "Zoom Out" }).click({ force: true });
  const card = page.locator('.react-flow__node[data-id="a"]');
  await until("cards are far", async () => (await box(card)).width < 40);
  const was = await box(card);
  await drag(page, was, 120, 90);
  await until("the view has moved", async () => Math.abs((await box(card)).x - was.x - 120) < 3);
  expect(await page.locator('.react-flow__node[data-id="b"]').boundingBox()).not.toBeNull();
  // What had been moved would be saved by the time that another edit is.
  await card.click();
  await page.getByLabel("Name", { exact: true }).fill("Renamed");
  await page.getByLabel("Name", { exact: true }).press("Enter");
  await until("it is saved", async () => (await definition(ada, id)).nodes[0].name === "Renamed");
  const { nodes } = await definition(ada, id);
  expect(nodes.map((each: Json) => each.position)).toEqual([
    { x: 0, y: 0 },
    { x: 400, y: 0 },
  ]);
  calm(page);
});

test("sixty steps open with names that can be read", async () => {
  const ada = await harness.person("Ada Sixty");
  const { page } = ada;
  await open(ada, {
    nodes: Array.from({ length: 60 }, (_, at) => task(`n${at}`, `Step ${at}`, at * 330, (at % 3) * 120)),
  });
  await node(page, "Step 0").first().waitFor();
  const size = await node(page, "Step 0")
    .first()
    .evaluate((card) => {
      const text = [...card.querySelectorAll("p, span")].find((each) => each.textContent === "Step 0");
      const viewport = document.querySelector<HTMLElement>(".react-flow__viewport");
      if (!text || !viewport) return 0;
      return Number.parseFloat(getComputedStyle(text).fontSize) * new DOMMatrix(viewport.style.transform).a;
    });
  expect(size).toBeGreaterThanOrEqual(8.5);
  calm(page);
});

test("Shift and a click extends the selection", async () => {
  const ada = await harness.person("Ada Shift");
  const { page } = ada;
  const id = await open(ada, { nodes: [task("a", "First", 0), task("b", "Second", 400), task("c", "Third", 800)] });
  await node(page, "First").click();
  await node(page, "Second").click({ modifiers: ["Shift"] });
  await until("two are selected", async () => (await page.locator(".react-flow__node.selected").count()) === 2);
  await node(page, "First").click({ modifiers: ["Shift"] });
  await until("one is selected", async () => (await page.locator(".react-flow__node.selected").count()) === 1);
  await canvas(page).press("Delete");
  await until("the second is gone", async () => {
    const names = (await definition(ada, id)).nodes.map((each: Json) => each.name);
    return names.join() === "First,Third";
  });
  calm(page);
});

test("fit, tidy up and paste leave every step in view, beside the panels", async () => {
  const ada = await harness.person("Ada Fit");
  const { page } = ada;
  await ada.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const nodes = Array.from({ length: 12 }, (_, at) =>
    task(`n${at}`, `Step ${at}`, (at % 4) * 300, Math.floor(at / 4) * 130),
  );
  await open(ada, { nodes });
  await page.getByRole("button", { name: "Add a step" }).click();
  await page.getByRole("region", { name: "Steps to add" }).waitFor();
  await page.getByRole("button", { name: "Show all steps" }).click();
  await free(page, "all fit");
  await page.getByRole("button", { name: "Tidy up" }).click();
  await free(page, "all are in view when tidied up");
  await page.getByRole("button", { name: "Undo your last edit" }).click();

  // Copies are put where they can be seen, however far away the originals are.
  await page.getByRole("button", { name: "Show all steps" }).click();
  await free(page, "all fit again");
  await canvas(page).press("Control+a");
  await page.keyboard.press("Control+c");
  await drag(page, { x: 700, y: 840, width: 0, height: 0 }, 500, -300);
  await page.keyboard.press("Control+v");
  await until("the copies are there", async () => (await page.locator(".react-flow__node").count()) === 24);
  await page.getByRole("button", { name: "Undo your last edit" }).waitFor();
  const pane = await box(canvas(page));
  await until("the copies are in view", async () => {
    const copies = await Promise.all((await page.locator(".react-flow__node.selected").all()).map(box));
    return (
      copies.length === 12 &&
      copies.every((card) => card.x >= pane.x && card.y >= pane.y && card.x + card.width <= pane.x + pane.width + 1)
    );
  });
  calm(page);
});

test("copies lie beside the map, which comes with them", async () => {
  const ada = await harness.person("Ada Map");
  const { page } = ada;
  await ada.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const place = (at: number) => [(at % 2) * 700, Math.floor(at / 2) * 420] as const;
  await open(ada, { nodes: Array.from({ length: 6 }, (_, at) => task(`n${at}`, `Step ${at}`, ...place(at))) });
  await page.getByRole("button", { name: "Show all steps" }).click();
  await free(page, "all fit");
  await canvas(page).press("Control+a");
  await page.keyboard.press("Control+c");
  await page.keyboard.press("Control+v");
  await until("the copies are there", async () => (await page.locator(".react-flow__node").count()) === 12);
  await page.getByRole("img", { name: "Map of the graph" }).waitFor();
  expect(await page.locator(".react-flow__node.selected").count()).toBe(6);
  await free(page, "the copies can be seen", ".react-flow__node.selected");
  calm(page);
});

test("a step that is added by keyboard has the focus, also when it was out of view", async () => {
  const ada = await harness.person("Ada Far Focus");
  const { page } = ada;
  await open(ada, {
    nodes: Array.from({ length: 200 }, (_, at) =>
      task(`n${at}`, `Step ${at}`, (at % 10) * 260, Math.floor(at / 10) * 90),
    ),
  });
  const first = page.locator('.react-flow__node[data-id="n0"]');
  await first.focus();
  await page.keyboard.press("a");
  await page.getByPlaceholder("Type to search").fill("python");
  await page.keyboard.press("Enter");
  await until("it has the focus", () =>
    page.evaluate(() => document.activeElement?.getAttribute("aria-label") === "Step Python step"),
  );
  calm(page);
});

test("a step that is added by keyboard has the focus", async () => {
  const ada = await harness.person("Ada Focus");
  const { page } = ada;
  const id = await open(ada, { nodes: [task("a", "First", 0)] });
  await page.locator('.react-flow__node[data-id="a"]').focus();
  await page.keyboard.press("a");
  await page.getByPlaceholder("Type to search").fill("python");
  await page.keyboard.press("Enter");
  await node(page, "Python step").waitFor();
  await until("it has the focus", () =>
    page.evaluate(() => document.activeElement?.getAttribute("aria-label") === "Step Python step"),
  );
  await page.keyboard.press("Delete");
  await until("it is gone", async () => (await definition(ada, id)).nodes.length === 1);

  // The list of steps to add keeps the focus, so that several can be added.
  await page.getByRole("button", { name: "Add a step" }).click();
  const item = page.getByRole("region", { name: "Steps to add" }).getByRole("button", { name: /Shell step/ });
  await item.focus();
  await page.keyboard.press("Enter");
  await node(page, "Shell step").waitFor();
  expect(await item.evaluate((element) => element === document.activeElement)).toBe(true);
  calm(page);
});

test("a command can be edited again after the window was narrow", async () => {
  const ada = await harness.person("Ada Narrow");
  const { page } = ada;
  const id = await open(ada, { nodes: [task("a", "First", 0)] });
  await node(page, "First").click();
  await command(page).waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByText("View only on small screens.").waitFor();
  await page.getByRole("button", { name: "Show details" }).click();
  await command(page).click();
  await page.keyboard.type("no");
  expect(await command(page).innerText()).toBe("true");
  await page.setViewportSize({ width: 1440, height: 900 });
  await command(page).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(" yes");
  await until("it is saved", async () => (await definition(ada, id)).nodes[0].command === "true yes");
  calm(page);
});

test("a step for each file brings the input that it runs over", async () => {
  const ada = await harness.person("Ada Each");
  const { page } = ada;
  const id = await open(ada, { nodes: [task("a", "First", 0)] });
  const add = async () => {
    await canvas(page).press("a");
    await page.getByPlaceholder("Type to search").fill("for each file");
    await page.keyboard.press("Enter");
  };
  await add();
  await until("input and step are there", async () => {
    const { inputs, nodes } = await definition(ada, id);
    return inputs.files?.type === "files" && nodes.some((each: Json) => each.scatter?.over === "inputs.files");
  });
  await page.getByRole("tab", { name: "Problems", exact: true }).waitFor();
  expect(await page.getByRole("button", { name: "Run", exact: true }).getAttribute("aria-disabled")).toBeNull();
  await page.getByRole("button", { name: "Undo your last edit" }).click();
  await until("both are gone", async () => {
    const { inputs, nodes } = await definition(ada, id);
    return Object.keys(inputs).length === 0 && nodes.length === 1;
  });
  // A second one runs over the same files.
  await add();
  await add();
  await until("two steps share an input", async () => {
    const { inputs, nodes } = await definition(ada, id);
    return nodes.length === 3 && Object.keys(inputs).join() === "files";
  });
  calm(page);
});

test("a problem marks its field, and its fix is taken back by undo", async () => {
  const ada = await harness.person("Ada Fix");
  const { page } = ada;
  const asked: string[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/validate")) asked.push(request.url());
  });
  const id = await open(ada, {
    inputs: { reads: { type: "files" } },
    nodes: [task("a", "First", 0), task("b", "Gather", 400, 0, { inputs: { parts: {} }, command: "cat $INPUT_parts" })],
  });
  // What waits for something, when the page is opened.
  await page.getByRole("tab", { name: "Problems 1" }).click();
  const panel = page.getByRole("tabpanel", { name: /Problems/ });
  await panel.getByText('Nothing is connected to the input "parts" of "Gather"').waitFor();
  // An input that no step uses is a warning.
  await panel.getByText('No step uses the input "reads"').waitFor();
  await panel.getByRole("button", { name: "Make the input optional" }).click();
  await until("it is optional", async () => (await definition(ada, id)).nodes[1].inputs.parts.optional === true);
  await page.getByRole("tab", { name: "Problems", exact: true }).waitFor();
  expect(await page.getByRole("button", { name: "Run", exact: true }).getAttribute("aria-disabled")).toBeNull();
  await page.getByRole("button", { name: "Undo your last edit" }).click();
  await page.getByRole("tab", { name: "Problems 1" }).waitFor();

  // Each field says what is wrong with it.
  await node(page, "First").click();
  await page.getByText("No secrets used.").waitFor();
  const over = page.getByLabel("Run once per item of");
  await over.fill("inputs.birds");
  await over.press("Enter");
  await page.getByRole("tabpanel").getByText('There is no input called "birds".').waitFor();
  await until("the field is marked", async () => (await over.getAttribute("aria-invalid")) === "true");
  await accessible(page, "the editor with a problem at its field");
  await page.getByRole("button", { name: 'Create the input "birds"' }).click();
  await until("the input is made", async () => (await definition(ada, id)).inputs.birds?.type === "files");
  await until("the field is fine", async () => (await over.getAttribute("aria-invalid")) === null);
  await command(page).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await page.getByRole("tabpanel").getByText('"First" has no command').waitFor();
  await page.getByRole("button", { name: "Run", exact: true }).hover();
  await page.getByText("(2 problems)").filter({ visible: true }).first().waitFor();
  expect(asked).toEqual([]);
  calm(page);
});

test("an input, an output, a parameter and a step are renamed everywhere", async () => {
  const ada = await harness.person("Ada Name");
  const { page } = ada;
  const id = await open(ada, {
    inputs: { reads: { type: "files" } },
    parameters: { limit: { type: "integer", default: 1 } },
    nodes: [
      task("trim", "Trim", 0, 0, {
        command: 'echo "$ITEM" $PARAM_limit\n',
        scatter: { over: "inputs.reads" },
        outputs: { out: { path: "out.txt" } },
      }),
      task("count", "Count", 400, 0, {
        command: "cat $INPUT_parts $INPUT_reads\n",
        when: "params.limit > 0 && size(nodes.trim.outputs.out) > 0",
        inputs: { reads: { from: "inputs.reads" } },
      }),
    ],
    edges: [{ id: "e", source: "trim", sourceHandle: "out", target: "count", targetHandle: "parts" }],
    outputs: { result: { from: "trim.out" } },
  });
  const rename = async (field: Locator, to: string) => {
    await field.fill(to);
    await field.press("Enter");
  };
  await page.getByRole("tab", { name: "Workflow" }).click();
  await page.getByPlaceholder("No default").waitFor();
  await rename(page.getByLabel("Name of the file input"), "samples");
  /** saved waits until the server has what is wanted of the two steps, and of the rest. */
  const saved = (what: string, wanted: (trim: Json, count: Json, rest: Json) => boolean) =>
    until(what, async () => {
      const all = await definition(ada, id);
      const step = (name: string) => all.nodes.find((each: Json) => each.name === name);
      return wanted(step("Trim"), step("Count"), all);
    });
  await saved(
    "the input is renamed",
    (trim, count, { inputs }) =>
      inputs.samples && count.inputs.reads.from === "inputs.samples" && trim.scatter.over === "inputs.samples",
  );

  // A command is shown before it is changed.
  await rename(page.getByLabel("Name of the parameter"), "most");
  const dialog = page.getByRole("dialog", { name: "Change the commands too?" });
  await dialog.getByText('echo "$ITEM" $PARAM_most').waitFor();
  await accessible(page, "the commands that name something");
  await saved(
    "the parameter is renamed",
    (trim, count, { parameters }) =>
      parameters.most && count.when.startsWith("params.most > 0") && trim.command.includes("$PARAM_limit"),
  );
  await dialog.getByRole("button", { name: "Replace in 1 command" }).click();
  await saved("the command is changed", (trim) => trim.command.includes("$PARAM_most"));

  await node(page, "Trim").click();
  await rename(page.getByLabel("Name of the output"), "texts");
  await saved(
    "the output is renamed",
    (_trim, count, { edges, outputs }) =>
      outputs.result.from === "trim.texts" &&
      edges[0].sourceHandle === "texts" &&
      count.when.endsWith("size(nodes.trim.outputs.texts) > 0"),
  );
  await rename(page.getByLabel("Step ID"), "clean");
  await saved(
    "the step is renamed",
    (_trim, count, { edges, outputs }) =>
      edges[0].source === "clean" &&
      outputs.result.from === "clean.texts" &&
      count.when.endsWith("size(nodes.clean.outputs.texts) > 0"),
  );
  await until("the address names it", async () => new URL(page.url()).searchParams.get("node") === "clean");
  expect((await workflow(ada, id)).problems).toEqual([]);

  // One step of undo for each.
  await page.getByRole("button", { name: "Undo your last edit" }).click();
  await until("the step has its old id", async () => {
    const { edges, outputs } = await definition(ada, id);
    return edges[0].source === "trim" && outputs.result.from === "trim.texts";
  });
  calm(page);
});

async function workflow(person: Person, id: string): Promise<Json> {
  return (await person.api("GET", `/api/workflows/${id}`)).body.data;
}
