import { expect, test } from "vitest";
import { type Column, cell, type SweepRun, sorted } from "./sweep.ts";

const run = (number: number, took: number | null, value: string | null) =>
  ({
    run: { number, durationMs: took, creditsUsed: 0, status: "completed" },
    parameters: { q: number * 10 },
    outputs: value === null ? [] : [{ port: "a.b", value, name: "f" }],
  }) as unknown as SweepRun;

test("a table is sorted by numbers as numbers, and what is missing comes last", () => {
  const rows = [run(1, 200, "9"), run(2, null, "10"), run(3, 100, null)];
  const numbers = (column: Column, down = false) => sorted(rows, column, down).map((each) => each.run.number);
  expect(numbers({ kind: "took" })).toEqual([3, 1, 2]);
  expect(numbers({ kind: "took" }, true)).toEqual([1, 3, 2]);
  expect(numbers({ kind: "output", name: "a.b" })).toEqual([1, 2, 3]);
  expect(numbers({ kind: "parameter", name: "q" }, true)).toEqual([3, 2, 1]);
  expect(cell(rows[0] as SweepRun, { kind: "output", name: "a.b" })).toBe(9);
});
