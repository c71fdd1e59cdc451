import { expect, test } from "vitest";
import { hereZone, onClock, zones } from "./times.ts";

test("a time is shown by the clocks of its zone, and one of no zone by UTC", () => {
  expect(onClock("2027-03-28T01:00:00.000Z", "Europe/Berlin")).toMatch(/28 Mar.*03:00$/);
  expect(onClock("2027-03-28T01:00:00.000Z", "UTC")).toMatch(/28 Mar.*01:00$/);
  expect(onClock("2027-03-28T01:00:00.000Z", "Mars/Base")).toMatch(/28 Mar.*01:00 UTC$/);
});

test("UTC is always a choice, once, and here is one", () => {
  expect(zones().filter((zone) => zone === "UTC")).toHaveLength(1);
  expect(hereZone()).not.toBe("");
});
