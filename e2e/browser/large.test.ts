// Large graphs: every card and every line that is in view is drawn, wherever
// one looks, in the editor and on the run page.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, type Json, look, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

const lanes = 10;

/** graph is steps in ten lanes, far from the origin; each lane is a chain. */
function graph(steps: number): Json {
  const nodes = Array.from({ length: steps }, (_, at) => ({
    id: `n${at}`,
    name: `Step ${at}`,
    type: "task",
    position: { x: 5000 + Math.floor(at / lanes) * 320, y: 3000 + (at % lanes) * 140 },
    command: "true",
    outputs: { out: { path: "out.txt" } },
  }));
  const edges = nodes.slice(lanes).map((each, at) => ({
    id: `e${at}`,
    source: `n${at}`,
    target: each.id,
    // Every fifth line only orders, and ends in the cards' heads.
    ...(at % 5 !== 0 && { sourceHandle: "out", targetHandle: "in" }),
  }));
  return { version: 1, nodes, edges };
}

interface Seen {
  cards: number;
  lines: number;
  wrong: string[];
}

/** seen compares what should be in view, by the graph's own numbers, with what is drawn. */
function seen(page: Page, { nodes, edges }: Json): Promise<Seen> {
  return page.evaluate(
    ({ nodes, edges }) => {
      const wrong: string[] = [];
      const pane = document.querySelector(".react-flow")?.getBoundingClientRect();
      const viewport = document.querySelector<HTMLElement>(".react-flow__viewport");
      if (!pane || !viewport) return { cards: 0, lines: 0, wrong: ["there is no canvas"] };
      const { a: zoom, e, f } = new DOMMatrix(viewport.style.transform);
      const inside = (x: number, y: number) =>
        x > pane.left + 8 && x < pane.right - 8 && y > pane.top + 8 && y < pane.bottom - 8;
      const drawn = new Map(
        [...document.querySelectorAll<HTMLElement>(".react-flow__node")].map((each) => [each.dataset.id, each]),
      );
      let cards = 0;
      const middles = new Map<string, { left: number; right: number; middle: number; inside: boolean }>();
      for (const node of nodes) {
        const left = pane.left + e + node.position.x * zoom;
        const top = pane.top + f + node.position.y * zoom;
        const right = left + 232 * zoom;
        const middle = top + 26 * zoom;
        const within = inside((left + right) / 2, middle);
        middles.set(node.id, { left, right, middle, inside: within });
        if (!within) continue;
        cards++;
        const card = drawn.get(node.id);
        const box = card?.getBoundingClientRect();
        if (!card || !box || box.width < 1 || getComputedStyle(card).visibility !== "visible")
          wrong.push(`no card ${node.id}`);
        else if (Math.abs(box.left - left) > 3 || Math.abs(box.top - top) > 3) wrong.push(`${node.id} is elsewhere`);
      }
      const paths = new Map(
        [...document.querySelectorAll<HTMLElement>(".react-flow__edge")].map((each) => [
          each.dataset.id,
          each.querySelector<SVGPathElement>("path"),
        ]),
      );
      let lines = 0;
      for (const edge of edges) {
        const [source, target] = [middles.get(edge.source), middles.get(edge.target)];
        if (!source || !target || !(source.inside || target.inside)) continue;
        lines++;
        const path = paths.get(edge.id);
        const matrix = path?.getScreenCTM();
        if (!path || !matrix || !path.getTotalLength()) {
          wrong.push(`no line ${edge.id}`);
          continue;
        }
        const from = path.getPointAtLength(0).matrixTransform(matrix);
        const to = path.getPointAtLength(path.getTotalLength()).matrixTransform(matrix);
        const near = 12 * zoom + 2;
        if (Math.abs(from.x - source.right) > near || Math.abs(to.x - target.left) > near)
          wrong.push(`${edge.id} does not meet its cards`);
      }
      return { cards, lines, wrong: wrong.slice(0, 5) };
    },
    { nodes, edges },
  );
}

/** whole waits until something is in view and all of it is drawn. */
async function whole(page: Page, definition: Json, when: string, cards = 1): Promise<Seen> {
  let last: Seen | null = null;
  try {
    return await until(when, async () => {
      last = await seen(page, definition);
      return last.wrong.length === 0 && last.cards >= cards && last.lines > 0 ? last : null;
    });
  } catch {
    throw new Error(`${when}: ${JSON.stringify(last)}`);
  }
}

/** walk looks everywhere: opened, from afar, from near, elsewhere, loaded again, and on a small screen. */
async function walk(page: Page, definition: Json, steps: number): Promise<void> {
  const zoom = async (way: "Zoom In" | "Zoom Out", times: number) => {
    for (let at = 0; at < times; at++) {
      const button = page.getByRole("button", { name: way });
      if (await button.isEnabled()) await button.click();
    }
  };
  await page.locator(".react-flow__node").first().waitFor();
  await whole(page, definition, `${steps} steps, opened`);
  await zoom("Zoom Out", 20);
  await whole(page, definition, `${steps} steps, from afar`, Math.min(steps, 300));
  await zoom("Zoom In", 12);
  await whole(page, definition, `${steps} steps, zoomed out and in`);
  const box = await page.locator(".react-flow__pane").boundingBox();
  if (!box) throw new Error("there is no pane");
  for (const [dx, dy] of [
    [-180, 0],
    [60, -50],
  ] as const) {
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.keyboard.down("Space");
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2 + dx, box.y + box.height / 2 + dy, { steps: 6 });
    await page.mouse.up();
    await page.keyboard.up("Space");
    await whole(page, definition, `${steps} steps, moved`);
  }
  await page.reload();
  await page.locator(".react-flow__node").first().waitFor();
  await whole(page, definition, `${steps} steps, loaded again`);
  await page.setViewportSize({ width: 390, height: 844 });
  await whole(page, definition, `${steps} steps, narrowed`);
  await page.reload();
  await page.locator(".react-flow__node").first().waitFor();
  await whole(page, definition, `${steps} steps, on a small screen`);
  await page.setViewportSize({ width: 1440, height: 900 });
}

async function workflow(person: Person, definition: Json): Promise<string> {
  const made = await person.api("POST", "/api/workflows", { name: `Of ${definition.nodes.length}`, definition });
  expect(made.status).toBe(201);
  return made.body.data.id;
}

/** stoppedRun is a run that was cancelled at once: its page draws the whole graph. */
async function stoppedRun(person: Person, workflowId: string): Promise<string> {
  const started = await person.api("POST", "/api/runs", { workflowId });
  expect(started.status).toBe(202);
  const { runId } = started.body.data;
  await person.api("POST", `/api/runs/${runId}/cancel`);
  await until("the run has ended", async () => {
    const { status } = (await person.api("GET", `/api/runs/${runId}`)).body;
    return status !== "queued" && status !== "running";
  });
  return runId;
}

for (const steps of process.env.MILLRACE_TEST_ALL ? [61, 500, 2000] : [500]) {
  test(`every card and line in view is drawn, of ${steps} steps`, async () => {
    const ada = await harness.person(`Ada ${{ 61: "Large", 500: "Larger" }[steps] ?? "Largest"}`);
    const definition = graph(steps);
    const id = await workflow(ada, definition);
    await ada.page.goto(`${harness.url}/workflows/${id}`);
    await walk(ada.page, definition, steps);
    const runId = await stoppedRun(ada, id);
    await ada.page.goto(`${harness.url}/runs/${runId}`);
    await walk(ada.page, definition, steps);
    calm(ada.page);
  });
}

test("five steps have their lines on a small screen too", async () => {
  const ada = await harness.person("Ada Small");
  const definition = graph(50);
  definition.nodes = definition.nodes.filter((_: Json, at: number) => at % lanes === 0);
  const kept = new Set(definition.nodes.map((node: Json) => node.id));
  definition.edges = definition.edges.filter((edge: Json) => kept.has(edge.source) && kept.has(edge.target));
  const id = await workflow(ada, definition);
  const runId = await stoppedRun(ada, id);
  await ada.page.setViewportSize({ width: 390, height: 844 });
  for (const path of [`/runs/${runId}`, `/workflows/${id}`]) {
    await ada.page.goto(harness.url + path);
    const { cards, lines } = await whole(ada.page, definition, path, 5);
    expect([cards, lines]).toEqual([5, 4]);
  }
  calm(ada.page);
});

/** contrast is how far a far card's fill is from the canvas behind it. */
function contrast(page: Page): Promise<number> {
  return page.evaluate(() => {
    const card = document.querySelector(".react-flow__node > *");
    const canvas = document.querySelector(".react-flow");
    if (!card || !canvas) return 0;
    const light = (element: Element) => {
      const canvas = document.createElement("canvas").getContext("2d");
      if (!canvas) return 0;
      canvas.fillStyle = getComputedStyle(element).backgroundColor;
      canvas.fillRect(0, 0, 1, 1);
      const [r = 0, g = 0, b = 0] = [...canvas.getImageData(0, 0, 1, 1).data].map((byte) => {
        const part = byte / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const [one, other] = [light(card), light(canvas)];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  });
}

test("cards can be told from the canvas from afar, in light and dark", async () => {
  const ada = await harness.person("Ada Far");
  const { page } = ada;
  const id = await workflow(ada, graph(100));
  const runId = await stoppedRun(ada, id);
  for (const path of [`/workflows/${id}`, `/runs/${runId}`]) {
    await page.goto(harness.url + path);
    await page.locator(".react-flow__node").first().waitFor();
    await page.getByRole("button", { name: "Zoom Out" }).waitFor();
    for (let at = 0; at < 20 && (await page.getByRole("button", { name: "Zoom Out" }).isEnabled()); at++)
      await page.getByRole("button", { name: "Zoom Out" }).click();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`[data-theme=${colorScheme}]`).first().waitFor();
      await until(`${path} in ${colorScheme}`, async () => (await contrast(page)) >= 3);
    }
  }
  await look(page, "run-far");
  calm(page);
});

// It prints figures for docs/web.md, which are no promise: machines differ.
if (process.env.MILLRACE_TEST_ALL) test("frames a second while two thousand steps are moved", movesManySteps);

async function movesManySteps() {
  const ada = await harness.person("Ada Frames");
  const id = await workflow(ada, graph(2000));
  const { page } = ada;
  await page.goto(`${harness.url}/workflows/${id}`);
  await page.locator(".react-flow__node").first().waitFor();
  const moved = async (where: string) => {
    const box = await page.locator(".react-flow__pane").boundingBox();
    if (!box) throw new Error("there is no pane");
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.keyboard.down("Space");
    await page.mouse.down();
    const frames = page.evaluate(
      () =>
        new Promise<number>((done) => {
          const begun = performance.now();
          let frames = 0;
          const count = () => {
            frames++;
            const passed = performance.now() - begun;
            if (passed < 4000) requestAnimationFrame(count);
            else done((frames * 1000) / passed);
          };
          requestAnimationFrame(count);
        }),
    );
    let counting = true;
    const counted = frames.finally(() => {
      counting = false;
    });
    for (let at = 0; counting; at++) {
      await page.mouse.move(
        box.x + box.width / 2 + 200 * Math.sin(at / 20),
        box.y + box.height / 2 + 80 * Math.cos(at / 20),
      );
    }
    await page.mouse.up();
    await page.keyboard.up("Space");
    process.stdout.write(
      `${where}: ${(await counted).toFixed(1)} frames a second, ${await page.locator(".react-flow__node").count()} cards\n`,
    );
  };
  await moved("as opened");
  for (let at = 0; at < 20; at++) {
    const button = page.getByRole("button", { name: "Zoom Out" });
    if (await button.isEnabled()) await button.click();
  }
  await moved("from afar");
  for (let at = 0; at < 12; at++)
    await page
      .getByRole("button", { name: "Zoom In" })
      .click({ timeout: 3000 })
      .catch(() => null);
  await moved("from near");
}
