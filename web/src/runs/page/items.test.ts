import { expect, test } from "vitest";
import { attemptText, failedText, itemText, nodeText, peak, placeText, took } from "./items.ts";
import { retryLabel } from "./RetryPlan.tsx";

const text = (item: unknown, itemCut = false) => itemText({ item, itemCut });

test("an item is its file's name, or its value", () => {
  expect(text("teams/team_1/files/file_2/sample-1.fq.gz")).toBe("sample-1.fq.gz");
  expect(text("teams/t/runs/r/trim.000003.1-12-abcdefghijkl.out.000000.trimmed.fq")).toBe("trimmed.fq");
  expect(text("chr1")).toBe("chr1");
  expect(text(20)).toBe("20");
  expect(text({ sample: "a" })).toBe('{"sample":"a"}');
  expect(text(null)).toBe("–");
  expect(text("aaaa", true)).toBe("aaaa…");
});

test("an attempt that goes on has not taken a time yet", () => {
  expect(took({ startedAt: "2026-01-01T00:00:00.000Z", finishedAt: null })).toBeNull();
  expect(took({ startedAt: "2026-01-01T00:00:00.000Z", finishedAt: "2026-01-01T00:00:01.500Z" })).toBe(1500);
});

test("an attempt is told in the words of steps and runs", () => {
  expect(attemptText({ attempt: 1, status: "succeeded", exitCode: 0 })).toBe("Attempt 1: completed, exit status 0");
  expect(attemptText({ attempt: 2, status: "started", exitCode: null })).toBe("Attempt 2: running");
});

test("the peak is that of all attempts", () => {
  expect(peak([])).toBeNull();
  expect(peak([{ peakMemBytes: null }, { peakMemBytes: 5 }, { peakMemBytes: 3 }])).toBe(5);
});

test("a place says what there is to know of it", () => {
  const time = (ms: number) => `${ms / 1000} s`;
  expect(placeText({ machine: null, queuedMs: 20, job: null }, time)).toBe("");
  expect(placeText({ machine: null, queuedMs: 4000, job: null }, time)).toBe("Waited 4 s for a place");
  expect(placeText({ machine: "n1", queuedMs: null, job: { id: "7", command: "scontrol show job 7" } }, time)).toBe(
    "On n1, job 7",
  );
});

test("a scatter says how many of its items failed", () => {
  const shards = { total: 200, done: 200, failed: 3 };
  expect(nodeText({ status: "failed", shards })).toBe("3 of 200 items failed");
  expect(nodeText({ status: "running", shards: { ...shards, done: 90 } })).toBe("Running 90 of 200, 3 failed");
  expect(nodeText({ status: "succeeded", shards: null })).not.toContain("of");
  expect(failedText({ total: 2, failed: 0 })).toBeNull();
});

test("a retry is named by the items that it runs", () => {
  const node = (items: { reused: number; run: number; failed: number } | null, expect = "computed" as const) => ({
    id: "a",
    name: "A",
    expect,
    reason: "",
    items,
  });
  expect(retryLabel([node({ reused: 197, run: 3, failed: 3 })])).toBe("Retry 3 failed (reuses 197)");
  expect(retryLabel([node({ reused: 190, run: 10, failed: 3 }), node(null)])).toBe("Retry 10 items (reuses 190)");
  expect(retryLabel([node({ reused: 0, run: 3, failed: 3 })])).toBeNull();
  expect(retryLabel([node(null)])).toBeNull();
});
