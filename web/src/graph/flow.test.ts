import { expect, test } from "vitest";
import type { Definition } from "../definition/model.ts";
import { flowOf, strokes, withProblems } from "./flow.ts";

test("a line with problems is marked, near and far", () => {
  const { nodes, edges } = flowOf({
    version: 1,
    nodes: ["a", "b", "c"].map((id, at) => ({ id, type: "task", position: { x: at * 320, y: 0 } })),
    edges: [
      { id: "e", source: "a", target: "b" },
      { id: "f", source: "b", target: "c" },
    ],
  } as unknown as Definition);
  expect(withProblems(edges, new Set())).toBe(edges);
  const [e, f] = withProblems(edges, new Set(["f"]));
  expect(e).toBe(edges[0]);
  expect(f).toMatchObject({ className: "faulty", ariaLabel: "Line that sets the order only, has problems" });
  expect(
    strokes(
      nodes,
      [e, f].flatMap((each) => each ?? []),
    ).map((each) => each.className),
  ).toEqual(["", "faulty"]);
});
