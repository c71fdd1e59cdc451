import { expect, test } from "vitest";
import type { RunRow } from "../queries.ts";
import { inBatches, outcome, runsCsv } from "./bulk.ts";

test("runs as a table, and a spreadsheet runs nothing of it", () => {
  const run = {
    id: "run_1",
    workflowName: "=1+1",
    number: 3,
    name: null,
    tags: ["a", "b"],
    status: "failed",
    startedBy: { type: "user", id: "u", name: "Ada, O." },
    createdAt: "2026-03-01T00:00:00Z",
    durationMs: 1500,
    creditsUsed: 0.5,
    errorMessage: 'it said "no"\n\nand more',
  } as RunRow;
  expect(runsCsv([run]).split("\r\n")[1]).toBe(
    `run_1,'=1+1,3,,a b,failed,"Ada, O.",2026-03-01T00:00:00Z,1.5,0.5,"it said ""no"""`,
  );
});

test("what fails keeps nothing else from being done", async () => {
  const seen: number[] = [];
  const results = await inBatches([1, 2, 3, 4, 5, 6], async (n) => {
    seen.push(n);
    if (n % 2 === 0) throw new Error(`not ${n}`);
  });
  expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
  expect(outcome(results)).toEqual({ done: 3, failed: 3, why: "not 2" });
});
