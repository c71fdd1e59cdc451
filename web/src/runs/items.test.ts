import { expect, test } from "vitest";
import { itemText, peak, placeText, took } from "./items.ts";

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
