import { QueryClientProvider } from "@tanstack/react-query";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { onFailure } from "../api/client.ts";
import { TeamClient } from "../api/team.ts";
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
const option = (name: string | RegExp) => vi.waitFor(() => screen.getByRole("option", { name }), 20_000);
const wait = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

test("the server is asked when typing pauses, and for the last words only", async () => {
  const asked: Request[] = [];
  const failed = vi.fn();
  onFailure(failed);
  vi.stubGlobal("fetch", (request: Request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/api/runs" && searchParams.has("q")) asked.push(request);
    return new Promise((_, refuse) => {
      request.signal.addEventListener("abort", () => refuse(new DOMException("aborted", "AbortError")));
    });
  });
  render(
    <QueryClientProvider client={new TeamClient("team_1")}>
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
    const createdAt = new Date(Date.now() - 2.5 * 3_600_000).toISOString();
    const runs = [{ id: "run_1", number: 4, name: "a run of it", workflowName: "Variants", status, createdAt }];
    return Response.json({ success: true, data: new URL(request.url).pathname === "/api/runs" ? runs : [] });
  });
  const client = new TeamClient("team_1");
  render(
    <QueryClientProvider client={client}>
      <Palette onClose={() => {}} />
    </QueryClientProvider>,
  );
  for (const text of ["quok", "quokka", "quok"]) {
    type(text);
    await wait(300);
    await option(/a run of it ?Variants #4 · running · 2 h ago/);
  }
  const moved = vi.fn();
  new MutationObserver(moved).observe(screen.getByRole("listbox"), { childList: true, subtree: true });
  status = "completed";
  await act(() => client.invalidateQueries({ queryKey: ["runs"] }));
  await option(/a run of it ?Variants #4 · completed · 2 h ago/);
  await wait(300);
  expect(moved).not.toHaveBeenCalled();
});

test("workflows are asked for, whether or not their list was seen", async () => {
  const names: Record<string, string[]> = { "": ["Newest"], quokka: ["Counts of quokkas"] };
  vi.stubGlobal("fetch", async (request: Request) => {
    const url = new URL(request.url);
    const found = url.pathname === "/api/workflows" ? (names[url.searchParams.get("q") ?? ""] ?? []) : [];
    return Response.json({ success: true, data: found.map((name) => ({ id: `wf_${name}`, name })) });
  });
  render(
    <QueryClientProvider client={new TeamClient("team_1")}>
      <Palette onClose={() => {}} />
    </QueryClientProvider>,
  );
  await option("Newest");
  type("quokka");
  await wait(300);
  await option("Counts of quokkas");
});

test("what was there stays until the server has answered, and nothing is said to be missing before", async () => {
  vi.stubGlobal("fetch", async (request: Request) => {
    const url = new URL(request.url);
    const words = url.searchParams.get("q");
    if (words)
      await new Promise((_, refuse) => request.signal.addEventListener("abort", () => refuse(request.signal.reason)));
    const data = url.pathname === "/api/workflows" && !words ? [{ id: "wf_1", name: "Newest" }] : [];
    return Response.json({ success: true, data });
  });
  render(
    <QueryClientProvider client={new TeamClient("team_1")}>
      <Palette onClose={() => {}} />
    </QueryClientProvider>,
  );
  await option("Newest");
  type("newe");
  await wait(300);
  screen.getByRole("option", { name: "Newest" });
  type("zebra");
  await wait(300);
  screen.getByText("Searching…");
  expect(screen.queryByText("No results")).toBeNull();
});
