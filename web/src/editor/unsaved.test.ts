import { expect, test } from "vitest";
import * as Y from "yjs";
import monteCarlo from "../../../examples/monte-carlo/workflow.json";
import type { Definition } from "../workflows/queries.ts";
import { draw } from "./graph.ts";
import { descends, rebase } from "./unsaved.ts";

const base = monteCarlo.definition as unknown as Definition;
const [first, second] = (base.nodes ?? []).map((node) => node.id) as [string, string];

function changed(work: (definition: Definition) => void): Definition {
  const copy = structuredClone(base);
  work(copy);
  return copy;
}

const nodeOf = (definition: Definition, id: string) => (definition.nodes ?? []).find((node) => node.id === id);

test("changes to different fields of one step are both kept", () => {
  const mine = changed((each) => Object.assign(nodeOf(each, first) ?? {}, { name: "Mine" }));
  const theirs = changed((each) => Object.assign(nodeOf(each, first) ?? {}, { command: "theirs" }));
  expect(nodeOf(rebase(base, mine, theirs), first)).toMatchObject({ name: "Mine", command: "theirs" });
});

test("what I added, removed and wired is done again, and nothing else is undone", () => {
  const mine = changed((each) => {
    each.nodes = [...(each.nodes ?? []).filter((node) => node.id !== second), { id: "new", type: "task" } as never];
    each.edges = [];
    each.parameters = {};
  });
  const theirs = changed((each) => {
    each.nodes?.push({ id: "other", type: "task" } as never);
    each.outputs = { made: "kept" } as never;
  });
  const merged = rebase(base, mine, theirs);
  const ids = (merged.nodes ?? []).map((node) => node.id);
  expect(ids).toContain("new");
  expect(ids).toContain("other");
  expect(ids).not.toContain(second);
  expect(merged.edges).toEqual([]);
  expect(merged.parameters).toEqual({});
  expect(merged.outputs).toMatchObject({ made: "kept" });
});

test("a document that started afresh does not descend from what was known", () => {
  const [one, fresh] = [new Y.Doc(), new Y.Doc()];
  draw(one, base, "server");
  const known = Y.encodeStateVector(one);
  const later = new Y.Doc();
  Y.applyUpdate(later, Y.encodeStateAsUpdate(one));
  draw(later, { ...base, nodes: [] }, "server");
  draw(fresh, base, "server");
  expect(descends(later, known)).toBe(true);
  expect(descends(fresh, known)).toBe(false);
});
