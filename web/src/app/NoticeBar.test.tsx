import { QueryClientProvider } from "@tanstack/react-query";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TeamClient } from "../api/team.ts";
import { NoticeBar } from "./NoticeBar.tsx";

const none = { id: null, text: null, level: null, until: null };
let notice: object = none;

beforeEach(() => {
  vi.useFakeTimers();
  localStorage.clear();
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ success: true, data: notice })));
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const show = async () => {
  const shown = render(
    <QueryClientProvider client={new TeamClient(null)}>
      <NoticeBar />
    </QueryClientProvider>,
  );
  await act(() => vi.advanceTimersByTimeAsync(0));
  return shown;
};
const later = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));
const text = () => screen.getByRole("status").textContent;

test("a notice appears in a page that is open, and goes at its time", async () => {
  notice = none;
  await show();
  expect(text()).toBe("");
  const until = new Date(Date.now() + 20_000).toISOString();
  notice = { id: "notice_1", text: "New <b>disks</b>", level: "warning", until };
  await later(15_100);
  expect(text()).toContain("New <b>disks</b>");
  expect(screen.queryByRole("button")).toBeNull();
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("no network")));
  await later(4_000);
  expect(text()).toContain("disks");
  await later(1_000);
  expect(text()).toBe("");
});

test("a notice that informs is dismissed until it is set again", async () => {
  notice = { id: "notice_1", text: "Welcome", level: "info", until: null };
  const page = await show();
  fireEvent.click(screen.getByRole("button", { name: "Dismiss notice" }));
  expect(text()).toBe("");
  page.unmount();
  await show();
  expect(text()).toBe("");
  notice = { id: "notice_2", text: "Welcome", level: "info", until: null };
  await later(15_100);
  expect(text()).toContain("Welcome");
});
