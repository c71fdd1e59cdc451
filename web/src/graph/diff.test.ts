import { expect, test } from "vitest";
import type { Definition } from "../definition/model.ts";
import { differences, lineDiff, sameLayout, sorted } from "./diff.ts";

test("lines that differ are shown with some that do not", () => {
  const lines = (before: string, after: string) => lineDiff(before, after, 1).map((line) => line.sign + line.text);
  expect(lines("a\nb\nc\nd\ne", "a\nb\nx\nd\ne")).toEqual([" b", "-c", "+x", " d"]);
  expect(lines("a\nb\nc\nd", "x\nb\nc\ny")).toEqual(["-a", "+x", " b", " c", "-d", "+y"]);
  expect(lines("a", "a")).toEqual([]);
});

test("the same value is the same text, whatever order its keys came in", () => {
  const text = (value: unknown) => JSON.stringify(sorted(value));
  expect(text({ b: [{ d: 1, c: 2 }], a: null })).toBe(text({ a: null, b: [{ c: 2, d: 1 }] }));
  expect(text([2, 1])).toBe("[2,1]");
});

test("a step that was moved changes the layout alone, and code from Git is a change", () => {
  const at = (x: number, more: object = {}) =>
    ({ version: 1, nodes: [{ id: "a", type: "task", command: "true", position: { x, y: 0 } }], ...more }) as Definition;
  expect(differences(at(0), at(9))).toEqual([]);
  expect([sameLayout(at(0), at(0)), sameLayout(at(0), at(9))]).toEqual([true, false]);
  const source = { git: "https://example.org/code.git", ref: "main" };
  expect(differences(at(0), at(0, { source })).map(({ id, fields }) => [id, fields])).toEqual([
    ["source", ["git", "ref"]],
  ]);
});
