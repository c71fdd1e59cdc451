import { afterEach, expect, test, vi } from "vitest";
import { untilLoaded } from "./untilLoaded.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("a part is loaded when the server is back, and an error where the server does not have it", async () => {
  vi.useFakeTimers();
  let away = true;
  vi.stubGlobal("fetch", () => (away ? Promise.reject(new Error("away")) : Promise.resolve(new Response("{}"))));
  const load = vi.fn(() => (away ? Promise.reject(new Error("no part")) : Promise.resolve("part")));
  const loaded = untilLoaded(load);
  await vi.advanceTimersByTimeAsync(5500);
  expect(load).toHaveBeenCalledTimes(6);
  away = false;
  await vi.advanceTimersByTimeAsync(1000);
  expect(await loaded).toBe("part");

  const gone = expect(untilLoaded(() => Promise.reject(new Error("gone")))).rejects.toThrow("gone");
  await vi.advanceTimersByTimeAsync(1000);
  await gone;
});
