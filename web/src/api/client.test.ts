import { afterEach, expect, test, vi } from "vitest";
import { ask, bare, newApi } from "./client.ts";
import { sentence } from "./failure.ts";
import { follow, type RunMessage } from "./stream.ts";

const api = newApi("team_1");

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function serve(...answers: (Response | Error)[]) {
  const asked: Request[] = [];
  vi.stubGlobal("fetch", async (input: Request | string, init?: RequestInit) => {
    asked.push(input instanceof Request ? input : new Request(new URL(input, "http://localhost"), init));
    const next = answers.shift();
    if (!next || next instanceof Error) throw next ?? new Error("nothing more to answer");
    return next;
  });
  return asked;
}

const json = (body: unknown, status = 200, headers = {}) =>
  new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json", ...headers } });

test("every request names the team, and its answer comes without the envelope", async () => {
  const asked = serve(json({ success: true, data: { id: "user_1" } }), json({}), json({}), json({}));
  expect(await ask(api.GET("/api/me"))).toEqual({ id: "user_1" });
  await api.raw("/api/account/data");
  await api.raw("/api/runs", { headers: { Authorization: "Bearer of a guest" } });
  await newApi(null).raw("/api/me");
  expect(asked.map((request) => request.headers.get("X-Team-Id"))).toEqual(["team_1", "team_1", null, null]);
});

test("a failure keeps its words, code, request id and how long to wait", async () => {
  serve(
    json({ success: false, error: "too many runs", code: "rate_limited", requestId: "req_1" }, 429, {
      "Retry-After": "12",
    }),
  );
  await expect(bare(api.GET("/api/billing/credits"))).rejects.toMatchObject({
    status: 429,
    code: "rate_limited",
    requestId: "req_1",
    retryAfter: 12,
    message: "too many runs",
  });
});

test("a server that does not answer is said so", async () => {
  serve(new TypeError("Failed to fetch"), new TypeError("Failed to fetch"));
  await expect(ask(api.GET("/api/me"))).rejects.toMatchObject({ status: 0, code: "unreachable" });
  await expect(api.raw("/api/x")).rejects.toMatchObject({ status: 0 });
  expect(sentence(new Error("no open copy"))).toBe("No open copy.");
});

const events = (...frames: object[]) =>
  new Response(frames.map((frame, at) => `id: ${at + 1}:${at * 10}\ndata: ${JSON.stringify(frame)}\n\n`).join(""), {
    headers: { "Content-Type": "text/event-stream" },
  });

test("a stream that breaks is taken up where it was, and ends with the run", async () => {
  const asked = serve(
    events({ type: "connected" }, { type: "progress", progressPercent: 40 }),
    new TypeError("network"),
    events({ type: "snapshot" }, { type: "done", status: "completed" }),
  );
  const got: RunMessage[] = [];
  const states: string[] = [];
  await follow(api, "run_1", {
    signal: new AbortController().signal,
    onMessage: (message) => got.push(message),
    onConnection: (state) => states.push(state),
    wait: async () => {},
  });
  expect(got.map((message) => message.type)).toEqual(["connected", "progress", "snapshot", "done"]);
  expect(got.map((message) => message.logEnd)).toEqual([0, 10, 0, 10]);
  expect(asked[2]?.headers.get("Last-Event-ID")).toBe("2:10");
  expect(states.at(-1)).toBe("ended");
  expect(states).toContain("reconnecting");
});

test("a stream that falls silent is taken up where it was", async () => {
  vi.useFakeTimers();
  const beats = [": heartbeat\n\n", 'id: 1:10\ndata: {"type":"connected"}\n\n', ": heartbeat\n\n"];
  const asked: (string | null)[] = [];
  vi.stubGlobal("fetch", async (_path: string, { headers, signal }: { headers: Headers; signal: AbortSignal }) => {
    asked.push(headers.get("Last-Event-ID"));
    if (asked.length > 1) return events({ type: "done" });
    const body = new ReadableStream({
      start: (stream) => {
        for (const [at, beat] of beats.entries())
          setTimeout(() => stream.enqueue(new TextEncoder().encode(beat)), (at + 1) * 40_000);
        signal.addEventListener("abort", () => stream.error(signal.reason));
      },
    });
    return new Response(body);
  });
  const states: string[] = [];
  const following = follow(api, "run_1", {
    signal: new AbortController().signal,
    onMessage: () => {},
    onConnection: (state) => states.push(state),
    wait: async () => {},
  });
  await vi.advanceTimersByTimeAsync(179_000);
  expect([asked.length, states.at(-1)]).toEqual([1, "live"]);
  await vi.advanceTimersByTimeAsync(2000);
  await following;
  expect(asked).toEqual([null, "1:10"]);
  expect(states.at(-1)).toBe("ended");
});

test("a stream that is refused stays refused", async () => {
  serve(json({ success: false, error: "no such run", code: "not_found", requestId: "r" }, 404));
  const states: [string, string | undefined][] = [];
  await follow(api, "run_1", {
    signal: new AbortController().signal,
    onMessage: () => {},
    onConnection: (state, error) => states.push([state, error]),
  });
  expect(states.at(-1)).toEqual(["failed", "No such run."]);
});
