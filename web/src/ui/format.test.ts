import { expect, test } from "vitest";
import { ago, bytes, credits, duration, money, plural, shortAgo } from "./format.ts";

test("durations keep two units", () => {
  expect([0, 3.2, 420, 9_940, 42_000, 200_000, 7_500_000, 90_000_000].map(duration)).toEqual([
    "0 s",
    "4 ms",
    "0.4 s",
    "9.9 s",
    "42 s",
    "3 min 20 s",
    "2 h 5 min",
    "1 d 1 h",
  ]);
});

test("sizes count in 1024", () => {
  expect([0, 1, 1023, 1024, 5 * 2 ** 30, 12.34 * 2 ** 20].map(bytes)).toEqual([
    "0 bytes",
    "1 byte",
    "1,023 bytes",
    "1 kB",
    "5 GB",
    "12.3 MB",
  ]);
});

test("credits keep what matters", () => {
  expect([0, 0.00042, 0.123, 5.5832, 123.456, 12345.6].map(credits)).toEqual([
    "0",
    "0.0004",
    "0.12",
    "5.58",
    "123.5",
    "12,346",
  ]);
});

test("money is in minor units", () => {
  expect([money(1000, "usd"), money(500, "jpy")]).toEqual(["$10.00", "¥500"]);
});

test("times are told from now", () => {
  const now = Date.parse("2026-03-02T12:00:00Z");
  const at = (seconds: number) => ago(now + seconds * 1000, now);
  expect([at(-2), at(-100), at(-3 * 3600), at(-86_400), at(2 * 86_400)]).toEqual([
    "just now",
    "2 minutes ago",
    "3 hours ago",
    "yesterday",
    "in 2 days",
  ]);
  expect([0, 59, 125, 47 * 60, 72 * 60].map((minutes) => shortAgo(now - minutes * 60_000, now))).toEqual([
    "just now",
    "59 min ago",
    "2 h ago",
    "47 h ago",
    "3 d ago",
  ]);
  expect(plural(1, "run") + plural(1234, "run")).toBe("1 run1,234 runs");
});
