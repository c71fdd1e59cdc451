import { expect, test } from "vitest";
import { csv, nice, runway } from "./model.ts";

const credits = (remaining: number, topUpCredits: number) => ({
  monthlyCredits: 500,
  usedCredits: 0,
  remaining,
  percentUsed: 0,
  plan: "free",
  topUpCredits,
  heldCredits: 0,
  periodStart: "2026-03-01T00:00:00Z",
  periodEnd: "2026-04-01T00:00:00Z",
  aiAnalysis: { limit: 20, used: 0, remaining: 20, resetsAt: "2026-03-03T00:00:00Z" },
  storage: { usedBytes: 0, limitBytes: null },
});
const days = (perDay: number) =>
  Array.from({ length: 7 }, (_, at) => ({
    date: `2026-03-0${at + 1}`,
    credits: perDay,
    runs: 1,
    compute: perDay,
    storage: 0,
  }));
const now = new Date("2026-03-11T00:00:00Z");

test("the runway ends within the month when the pace is high", () => {
  expect(runway(credits(100, 0), days(10), now).until?.toISOString()).toBe("2026-03-21T00:00:00.000Z");
});

test("monthly credits come again, so a slow pace never ends", () => {
  expect(runway(credits(300, 0), days(10), now).until).toBeNull();
});

test("top-ups stretch what the month does not cover", () => {
  // 20 a day: 400 left and 100 topped up last the 21 days to April with 80 to
  // spare; April's 500 and those 80 last 29 days.
  expect(runway(credits(500, 100), days(20), now).until?.toISOString()).toBe("2026-04-30T00:00:00.000Z");
});

test("nothing spent is no forecast", () => {
  expect(runway(credits(10, 0), days(0), now)).toEqual({ perDay: 0, until: null });
});

test("a spreadsheet runs nothing of what a workflow is called", () => {
  const event = {
    id: "u",
    type: "run" as const,
    credits: -5.5,
    runId: "run_1",
    workflowId: null,
    actor: null,
    quantity: 3,
    unit: "second",
    description: '=HYPERLINK("x"), twice',
    createdAt: "2026-03-01T00:00:00Z",
  };
  expect(csv([event]).split("\r\n")[1]).toBe(
    `2026-03-01T00:00:00Z,run,-5.5,"'=HYPERLINK(""x""), twice",3,second,run_1,,`,
  );
});

test("charts end at round numbers", () => {
  expect([0, 0.3, 7, 12, 260, 1000].map(nice)).toEqual([1, 0.5, 10, 20, 500, 1000]);
});
