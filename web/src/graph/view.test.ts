import { expect, test } from "vitest";
import { type Box, firstView, isVisible, type Sized, uncovered, viewOf } from "./view.ts";

const pane = { width: 1000, height: 600 };

function lanes(count: number): Sized[] {
  return Array.from({ length: count }, (_, at) => ({
    position: { x: 9000 + Math.floor(at / 10) * 320, y: -4000 + (at % 10) * 140 },
    width: 232,
    height: 84,
  }));
}

function inside(node: Sized, { x, y, zoom }: { x: number; y: number; zoom: number }): boolean {
  const [left, top] = [node.position.x * zoom + x, node.position.y * zoom + y];
  const [right, bottom] = [left + (node.width ?? 0) * zoom, top + (node.height ?? 0) * zoom];
  return left >= 0 && top >= 0 && right <= pane.width && bottom <= pane.height;
}

test("a handful of steps is shown as a whole, however small the pane", () => {
  const nodes = lanes(12).map((node, at) => ({ ...node, position: { x: at * 900, y: 0 } }));
  const view = firstView(nodes, pane);
  expect(nodes.every((node) => inside(node, view))).toBe(true);
  expect(firstView([nodes[0] as Sized], pane).zoom).toBe(1);
});

test("sixty steps are shown as a whole where their names can be read, else their beginning", () => {
  const large = { width: 1400, height: 900 };
  const whole = firstView(lanes(60), large);
  expect(whole.zoom).toBeGreaterThanOrEqual(0.35);
  const chain = lanes(60).map((node, at) => ({ ...node, position: { x: at * 330, y: 0 } }));
  const view = firstView(chain, pane);
  expect(view.zoom).toBeGreaterThan(0.5);
  expect(inside(chain[0] as Sized, view)).toBe(true);
});

test("of a large graph its beginning is shown, near enough to be read", () => {
  const nodes = lanes(2000);
  const view = firstView(nodes, pane);
  expect(inside(nodes[0] as Sized, view)).toBe(true);
  expect(view.zoom).toBeGreaterThan(0.5);
});

test("the beginning is a step, not an empty corner", () => {
  const nodes = lanes(2000).map(({ position: { x, y }, ...size }) => ({ ...size, position: { x, y: -y - x * 2 } }));
  const view = firstView(nodes, pane);
  expect(nodes.some((node) => inside(node, view))).toBe(true);
});

test("nothing is looked at from where it starts", () => {
  expect(firstView([], pane)).toEqual({ x: 0, y: 0, zoom: 1 });
});

const toolbar = { x: 12, y: 12, width: 280, height: 40 };
const palette = { x: 12, y: 60, width: 240, height: 480 };
const map = { x: 784, y: 434, width: 200, height: 150 };

test.each<[string, Box[], number]>([
  ["a toolbar", [toolbar], 2],
  ["a toolbar and a palette", [toolbar, palette], 2],
  ["everything", [toolbar, palette, map], 2],
  ["everything, for something tall", [toolbar, palette, map], 0.3],
])("what is fitted lies beside %s", (_name, covered, ratio) => {
  const free = uncovered({ ...pane, covered }, ratio);
  expect(free.width * free.height).toBeGreaterThan(100_000);
  const box = { x: -500, y: 70, width: 1000 * ratio, height: 1000 };
  expect(isVisible(box, { ...pane, covered }, viewOf(box, { ...pane, covered }, 0))).toBe(true);
  expect(isVisible(box, { ...pane, covered: [{ x: 0, y: 0, ...pane }] }, viewOf(box, pane, 0))).toBe(false);
});

test("a pane that is covered as a whole is used as if it were not", () => {
  expect(uncovered({ ...pane, covered: [{ x: 0, y: 0, ...pane }] }, 1)).toEqual({ x: 0, y: 0, ...pane });
});
