import { expect, test } from "vitest";
import type { GraphEdge, GraphNode } from "../definition/model.ts";
import { place } from "./layout.ts";

const node = (id: string) => ({ id, type: "task", position: { x: 5, y: 7 } }) as GraphNode;
const edge = (source: string, target: string) => ({ id: `${source}${target}`, source, target }) as GraphEdge;

test("a node stands right of everything before it, and nothing overlaps", () => {
  const edges = [edge("a", "b"), edge("b", "d"), edge("a", "c"), edge("c", "d"), edge("a", "d")];
  const placed = place(["d", "c", "b", "a"].map(node), edges);
  const at = new Map(placed.map((each) => [each.id, each]));
  for (const { source, target } of edges) expect(at.get(source)?.x).toBeLessThan(at.get(target)?.x ?? 0);
  expect(new Set(placed.map(({ x, y }) => `${x} ${y}`)).size).toBe(4);
  expect(Math.min(...placed.map(({ x }) => x))).toBe(5);
});

test("rows follow their neighbours, so that few lines cross", () => {
  const nodes = ["a1", "a2", "a3", "b3", "b2", "b1"].map(node);
  const placed = place(nodes, [edge("a1", "b1"), edge("a2", "b2"), edge("a3", "b3")]);
  const y = (id: string) => placed.find((each) => each.id === id)?.y ?? 0;
  const order = (side: string) => ["1", "2", "3"].toSorted((p, q) => y(side + p) - y(side + q));
  expect(order("b")).toEqual(order("a"));
});

test("a circle and a line to nowhere do not stop it", () => {
  const placed = place(["a", "b", "c"].map(node), [edge("a", "b"), edge("b", "a"), edge("c", "gone")]);
  expect(placed).toHaveLength(3);
  expect(place([], [])).toEqual([]);
});

test("two thousand nodes are placed", () => {
  const nodes = Array.from({ length: 2000 }, (_, at) => node(`n${at}`));
  const edges = nodes.slice(1).map((each, at) => edge(`n${Math.floor(at / 3)}`, each.id));
  expect(new Set(place(nodes, edges).map(({ x, y }) => `${x} ${y}`)).size).toBe(2000);
});
