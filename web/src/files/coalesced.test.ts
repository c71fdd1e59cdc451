import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { coalesced } from "./coalesced.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("calls during the pause are answered together, those of each key by themselves", () => {
  const acted: string[] = [];
  const call = coalesced<string>((key) => void acted.push(key), 1000);
  call("a");
  expect(acted).toEqual(["a"]);
  for (let at = 0; at < 300; at++) call("a");
  call("b");
  expect(acted).toEqual(["a", "b"]);
  vi.advanceTimersByTime(1000);
  expect(acted).toEqual(["a", "b", "a"]);
  vi.advanceTimersByTime(5000);
  expect(acted).toEqual(["a", "b", "a"]);
  call("a");
  expect(acted).toEqual(["a", "b", "a", "a"]);
});
