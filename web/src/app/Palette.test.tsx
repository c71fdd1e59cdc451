import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { onFailure } from "../api/client.ts";
import Palette from "./Palette.tsx";

vi.mock("@tanstack/react-router", () => ({ useNavigate: () => vi.fn() }));

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      unobserve() {}
      disconnect() {}
    },
  );
  Element.prototype.scrollIntoView ??= () => {};
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const type = (text: string) => fireEvent.change(screen.getByPlaceholderText(/^Search/), { target: { value: text } });
const wait = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

test("the server is asked when typing pauses, and for the last words only", async () => {
  const asked: Request[] = [];
  const failed = vi.fn();
  onFailure(failed);
  vi.stubGlobal("fetch", (request: Request) => {
    if (new URL(request.url).pathname === "/api/runs") asked.push(request);
    return new Promise((_, refuse) => {
      request.signal.addEventListener("abort", () => refuse(new DOMException("aborted", "AbortError")));
    });
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Palette onClose={() => {}} />
    </QueryClientProvider>,
  );
  for (const text of ["a", "al", "ali", "alig", "align"]) {
    type(text);
    await wait(100);
  }
  expect(asked).toHaveLength(0);
  await wait(200);
  expect(asked.map((request) => new URL(request.url).searchParams.get("q"))).toEqual(["align"]);
  type("aligned");
  await wait(300);
  expect(asked.map((request) => request.signal.aborted)).toEqual([true, false]);
  expect(failed).not.toHaveBeenCalled();
});

test("what the server has found stays while one types on, and in its place when it changes", async () => {
  let status = "running";
  vi.stubGlobal("fetch", async (request: Request) => {
    const runs = [{ id: "run_1", name: "a run of it", workflowName: "Variants", status }];
    return Response.json({ success: true, data: new URL(request.url).pathname === "/api/runs" ? runs : [] });
  });
  const client = new QueryClient();
  render(
    <QueryClientProvider client={client}>
      <Palette onClose={() => {}} />
    </QueryClientProvider>,
  );
  for (const text of ["quok", "quokka", "quok"]) {
    type(text);
    await wait(300);
    await vi.waitFor(() => screen.getByRole("option", { name: /a run of it · running/ }));
  }
  const moved = vi.fn();
  new MutationObserver(moved).observe(screen.getByRole("listbox"), { childList: true, subtree: true });
  status = "completed";
  await act(() => client.invalidateQueries({ queryKey: ["runs"] }));
  await vi.waitFor(() => screen.getByRole("option", { name: /a run of it · completed/ }));
  await wait(300);
  expect(moved).not.toHaveBeenCalled();
});
