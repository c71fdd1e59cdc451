import { expect, test } from "vitest";
import { csv, entryText, groupsCsv, nice, outlook, readAlerts, runway, same } from "./model.ts";

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

const budget = {
  scope: "tag" as const,
  subject: "pilot",
  name: null,
  month: null,
  limit: 100,
  alertAt: [50],
  hard: false,
  spent: 10,
  held: 0,
  remaining: 90,
  forecast: 30,
  active: true,
};

test("a budget is fine, short or spent", () => {
  expect(outlook(budget)).toBe("fine");
  expect(outlook({ ...budget, forecast: 101 })).toBe("short");
  expect(outlook({ ...budget, remaining: 0 })).toBe("spent");
});

test("budgets are told apart by what they are of and their month", () => {
  expect(same(budget, { scope: "tag", subject: "pilot", month: null })).toBe(true);
  expect(same(budget, { scope: "tag", subject: "pilot", month: "2026-11" })).toBe(false);
  expect(same(budget, { scope: "user", subject: "pilot", month: null })).toBe(false);
});

test("percents are read, or are none", () => {
  expect(readAlerts("50, 80;100")).toEqual([50, 80, 100]);
  expect(readAlerts("")).toEqual([]);
  for (const text of ["0", "101", "1.5", "x", "1 2 3 4 5 6 7 8 9 10 11"]) expect(readAlerts(text)).toBeNull();
});

test("costs of groups are a table without formulas", () => {
  const day = { date: "2026-11-01", credits: 2, runs: 1, compute: 2, storage: 0 };
  const group = { by: "tag" as const, key: "a", name: "=1+1", credits: 2, runs: 1, series: [2, 0] };
  expect(groupsCsv([day, { ...day, date: "2026-11-02" }], [group])).toBe(
    "date,by,key,name,credits\r\n2026-11-01,tag,a,'=1+1,2",
  );
});

test("an entry of the ledger says once what it is for", () => {
  expect(entryText({ type: "run", description: "run of Align" })).toBe("Run of Align");
  expect(entryText({ type: "topup", description: "top-up: 1,000 credits" })).toBe("Top-up: 1,000 credits");
  expect(entryText({ type: "grant", description: "a workshop" })).toBe("Grant: a workshop");
});
