// Steps are joined by a line, by a drop, and by keyboard alone; fields keep
// what is typed into them.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible, calm, Harness, type Json, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

const task = (id: string, name: string, x: number, more: Json = {}) => ({
  id,
  name,
  type: "task",
  position: { x, y: 0 },
  command: "true",
  ...more,
});
const out = { outputs: { out: { path: "out.txt" } } };

async function open(person: Person, definition: Json): Promise<string> {
  const made = await person.api("POST", "/api/workflows", {
    name: "Joined",
    definition: { version: 1, ...definition },
  });
  expect(made.status).toBe(201);
  const { id } = made.body.data;
  await person.page.goto(`${harness.url}/workflows/${id}`);
  await person.page.getByText("Saved", { exact: true }).waitFor();
  return id;
}

async function definition(person: Person, id: string): Promise<Json> {
  return (await person.api("GET", `/api/workflows/${id}`)).body.data.definition;
}

const node = (page: Page, name: string) => page.locator(".react-flow__node", { hasText: name });

async function center(page: Page, name: string): Promise<{ x: number; y: number }> {
  const box = await node(page, name).boundingBox();
  if (!box) throw new Error(`${name} has no place`);
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

/** drawLine drags from a step's output port to a point. */
async function drawLine(page: Page, from: string, to: { x: number; y: number }): Promise<void> {
  await node(page, from).locator('.react-flow__handle[data-handleid="out"].source').hover();
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 8 });
  await page.mouse.up();
}

test("a line dropped on a step's body joins it", async () => {
  const ada = await harness.person("Ada Drop");
  const id = await open(ada, { nodes: [task("a", "First", 0, out), task("b", "Second", 500)] });
  await drawLine(ada.page, "First", await center(ada.page, "Second"));
  await until("they are joined", async () => {
    const [edge] = (await definition(ada, id)).edges ?? [];
    return edge?.source === "a" && edge.sourceHandle === "out" && edge.target === "b" && edge.targetHandle === "out";
  });
  expect(await ada.page.getByRole("dialog").count()).toBe(0);
  calm(ada.page);
});

test("a step put at the end of a line takes the line into the input that waits for it", async () => {
  const ada = await harness.person("Ada Gather");
  const { page } = ada;
  const id = await open(ada, { nodes: [task("a", "First", 0, out), task("b", "Second", 0, {})] });
  const at = await center(page, "First");
  await drawLine(page, "First", { x: at.x + 160, y: at.y + 220 });
  await page.getByPlaceholder("Type to search").fill("gather");
  await page.keyboard.press("Enter");
  await until("parts is wired", async () => {
    const { edges } = await definition(ada, id);
    return edges?.length === 1 && edges[0].targetHandle === "parts";
  });
  calm(page);
});

test("steps are joined by keyboard alone", async () => {
  const ada = await harness.person("Ada Keys");
  const { page } = ada;
  const id = await open(ada, {
    nodes: [task("a", "First", 0, out), task("b", "Second", 400, { inputs: { in: {} } }), task("c", "Third", 800)],
  });
  const tabTo = async (what: string, there: () => Promise<boolean>) => {
    for (let at = 0; at < 120; at++) {
      if (await there()) return;
      await page.keyboard.press("Tab");
    }
    throw new Error(`the keyboard does not reach ${what}`);
  };
  const focused = (selector: string) => page.evaluate((css) => document.activeElement?.matches(css) ?? false, selector);
  await tabTo("the second step", () => focused('.react-flow__node[data-id="b"]'));
  await page.keyboard.press("Enter");
  await page.getByRole("tab", { name: "Step", selected: true }).waitFor();
  await tabTo("where its input comes from", () => focused('select[aria-label="Source of in"]'));
  await page.keyboard.type("First");
  await page.keyboard.press("Enter");
  await until("a line carries out to in", async () => {
    const [edge] = (await definition(ada, id)).edges ?? [];
    return edge?.source === "a" && edge.sourceHandle === "out" && edge.target === "b" && edge.targetHandle === "in";
  });
  await page.locator(".react-flow__edge").waitFor({ state: "attached" });

  // Order alone, without a file.
  await page.locator('.react-flow__node[data-id="c"]').focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Order (no files)" }).waitFor();
  await tabTo("what it runs after", () => focused('select[aria-label="Run after"]'));
  await page.keyboard.type("Second");
  await page.keyboard.press("Enter");
  await until("the third waits for the second", async () => {
    const { edges } = await definition(ada, id);
    return edges.some((edge: Json) => edge.source === "b" && edge.target === "c" && !edge.sourceHandle);
  });
  await accessible(page, "the editor with lines made by keyboard");
  calm(page);
});

test("a step that is added lies on no other", async () => {
  const ada = await harness.person("Ada Space");
  const { page } = ada;
  const id = await open(ada, { nodes: [task("a", "First", 0)] });
  for (const count of [2, 3]) {
    await page.getByRole("region", { name: "Canvas" }).press("a");
    await page.getByPlaceholder("Type to search").fill("shell");
    await page.keyboard.press("Enter");
    await until("it is added", async () => (await definition(ada, id)).nodes.length === count);
  }
  const boxes = await Promise.all(
    (await page.locator(".react-flow__node").all()).map(async (each) => await each.boundingBox()),
  );
  for (const [at, one] of boxes.entries()) {
    for (const other of boxes.slice(at + 1)) {
      if (!one || !other) throw new Error("a step has no place");
      const apart =
        one.x + one.width <= other.x ||
        other.x + other.width <= one.x ||
        one.y + one.height <= other.y ||
        other.y + other.height <= one.y;
      expect(apart).toBe(true);
    }
  }
  calm(page);
});

test("a parameter is renamed as a whole, and a wrong default is shown, not lost", async () => {
  const ada = await harness.person("Ada Field");
  const { page } = ada;
  const id = await open(ada, {
    parameters: { alpha: { type: "integer", default: 1 }, beta: { type: "integer", default: 2 } },
    nodes: [task("a", "First", 0)],
  });
  await page.getByRole("tab", { name: "Workflow" }).click();
  const name = page.getByLabel("Name of the parameter").first();
  await name.focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("zeta");
  await page.keyboard.press("Enter");
  await until("it is renamed", async () => Object.keys((await definition(ada, id)).parameters).join() === "beta,zeta");

  const wrong = page.getByLabel("Default").first();
  await wrong.fill("many");
  await page.getByLabel("Help").first().focus();
  expect(await wrong.inputValue()).toBe("many");
  await page.getByText("Not a valid integer.").waitFor();
  expect((await definition(ada, id)).parameters.beta.default).toBe(2);
  await wrong.fill("5");
  await until("it is kept", async () => (await definition(ada, id)).parameters.beta.default === 5);
  calm(page);
});
