import { afterEach, expect, test, vi } from "vitest";
import { newApi } from "../api/client.ts";
import type { Run } from "./queries.ts";
import { RunStore } from "./runStore.ts";

afterEach(() => vi.unstubAllGlobals());

const many = 500;

function run(): Run {
  const nodes = Array.from({ length: many }, (_, at) => ({
    id: `n${at}`,
    name: `Step ${at}`,
    status: "pending",
    attempt: 0,
    cached: false,
    startedAt: null,
    finishedAt: null,
    durationMs: null,
  }));
  return { id: "run_1", status: "running", progressPercent: 0, nodes, definition: { version: 1 } } as unknown as Run;
}

function event(seq: number, nodeId: string, type = "node.started") {
  return { seq, type, at: "2026-01-01T00:00:01.000Z", level: "info", nodeId, shard: null, attempt: 1, data: {} };
}

test("a message about one node replaces one of five hundred, and tells only what is new", async () => {
  const all = [event(1, "n3"), event(2, "n7")];
  let upTo = 0;
  vi.stubGlobal("fetch", async (request: Request) => {
    const after = Number(new URL(request.url).searchParams.get("after_seq"));
    const events = all.filter((each) => each.seq > after && each.seq <= upTo);
    return Response.json({ success: true, data: { events, lastSeq: upTo, hasMore: false } });
  });
  const store = new RunStore(newApi("team_1"), run());
  const changes: string[][] = [];
  store.state.subscribe((now, old) => {
    const changed = [...now.nodes].filter(([id, node]) => node !== old.nodes.get(id)).map(([id]) => id);
    if (changed.length > 0) changes.push(changed);
  });
  upTo = 1;
  store.receive({ type: "progress", runId: "run_1", seq: 1, progressPercent: 5 });
  await expect.poll(() => changes).toEqual([["n3"]]);
  upTo = 2;
  store.receive({ type: "progress", runId: "run_1", seq: 2, resources: { cpuPercent: 80, memBytes: 1024 } });
  await expect.poll(() => changes).toEqual([["n3"], ["n7"]]);
  expect(store.state.getState()).toMatchObject({ run: { progressPercent: 5 }, events: [{ seq: 1 }, { seq: 2 }] });
  expect(store.samples).toMatchObject([{ cpuPercent: 80, memBytes: 1024 }]);

  // Reading the run again keeps what is the same.
  const before = store.state.getState().nodes;
  store.refresh({ ...run(), nodes: [...before.values()].map((node) => ({ ...node })) });
  const after = store.state.getState().nodes;
  expect([...after].every(([id, node]) => node === before.get(id))).toBe(true);
});

test("why a run waits follows the stream, and is gone when it starts", () => {
  const data = { events: [], lastSeq: 0, hasMore: false };
  vi.stubGlobal("fetch", async () => Response.json({ success: true, data }));
  const store = new RunStore(newApi("team_1"), { ...run(), status: "queued", waiting: null });
  const now = () => store.state.getState().run.waiting;
  const turn = { reason: "turn", message: "1 run is before it.", ahead: 1 };
  store.receive({ type: "snapshot", runId: "run_1", status: "queued", waiting: turn });
  expect(now()).toEqual(turn);
  store.receive({ type: "progress", runId: "run_1", status: "queued" });
  expect(now()).toEqual(turn);
  store.receive({ type: "progress", runId: "run_1", status: "running", waiting: null });
  expect(now()).toBeNull();
});

test("a step that waits when its run ends is skipped", () => {
  const data = { events: [], lastSeq: 0, hasMore: false };
  vi.stubGlobal("fetch", async () => Response.json({ success: true, data }));
  const queued: Run = { ...run(), status: "queued" };
  const store = new RunStore(newApi("team_1"), queued);
  const first = () => store.state.getState().nodes.get("n0")?.status;
  expect(first()).toBe("pending");
  store.refresh({ ...queued, status: "cancelled" });
  expect(first()).toBe("skipped");
  expect(
    new RunStore(newApi("team_1"), { ...queued, status: "interrupted" }).state.getState().nodes.get("n1")?.status,
  ).toBe("skipped");
});
