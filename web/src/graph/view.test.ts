import { expect, test } from "vitest";
import { firstView, type Sized } from "./view.ts";

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

test("a small graph is shown as a whole, however small the pane", () => {
  const nodes = lanes(60);
  const view = firstView(nodes, pane);
  expect(nodes.every((node) => inside(node, view))).toBe(true);
  expect(firstView([nodes[0] as Sized], pane).zoom).toBe(1);
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
