import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { serverAnswered, useConnection } from "./connection.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("a server that says nothing is asked again", async () => {
  vi.useFakeTimers();
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), ms);
    return stop.signal;
  });
  let asked = 0;
  vi.stubGlobal("fetch", (_path: string, { signal }: RequestInit) => {
    asked++;
    if (asked > 1) return Promise.resolve(new Response("{}"));
    return new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  });
  const client = new QueryClient();
  const { result } = renderHook(useConnection, {
    wrapper: ({ children }) => <QueryClientProvider client={client}>{children}</QueryClientProvider>,
  });
  act(() => serverAnswered(false));
  expect(result.current).toBe("reconnecting");
  await act(() => vi.advanceTimersByTimeAsync(12_000));
  expect([asked, result.current]).toEqual([1, "reconnecting"]);
  await act(() => vi.advanceTimersByTimeAsync(3000));
  expect([asked, result.current]).toEqual([2, "online"]);
});
