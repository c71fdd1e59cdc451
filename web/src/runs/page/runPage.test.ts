import { expect, test } from "vitest";
import type { Definition } from "../../workflows/queries.ts";
import type { RunEvent, RunNode } from "../queries.ts";
import { applyEvent, applyIfNewer } from "../runStore.ts";
import { waitingText } from "../waiting.ts";
import { attemptsOf } from "./attempts.ts";
import { compared } from "./comparison.ts";
import { causeOf, firstFailure, itemCauses, named, tailOf } from "./failure.ts";

const node = (change: Partial<RunNode> = {}): RunNode => ({
  id: "a",
  name: "A",
  status: "pending",
  attempt: 0,
  cached: false,
  cacheMiss: null,
  exitCode: null,
  startedAt: null,
  finishedAt: null,
  durationMs: null,
  peakMemBytes: null,
  cpuSeconds: null,
  shards: null,
  waitsFor: null,
  ...change,
});

const event = (type: RunEvent["type"], second: number, change: Partial<RunEvent> = {}): RunEvent => ({
  seq: second,
  type,
  at: new Date(second * 1000).toISOString(),
  level: "info",
  nodeId: "a",
  nodeName: "A",
  shard: null,
  attempt: 1,
  message: "",
  data: {},
  ...change,
});

test("a node follows its events", () => {
  const started = applyEvent(node(), event("node.started", 1));
  expect(started).toMatchObject({ status: "running", attempt: 1, startedAt: "1970-01-01T00:00:01.000Z" });
  const failed = applyEvent(started, event("node.failed", 4, { data: { exitCode: 3 } }));
  expect(failed).toMatchObject({ status: "failed", exitCode: 3, durationMs: 3000 });
  expect(applyEvent(node(), event("node.cached", 2))).toMatchObject({ status: "succeeded", cached: true });
  expect(applyEvent(started, event("output.verified", 5))).toBe(started);
  // One item of many does not end its node.
  expect(applyEvent(started, event("node.succeeded", 5, { shard: 2 }))).toBe(started);
});

test("the culprit is the first that was not allowed to fail", () => {
  const definition = { version: 1, nodes: [{ id: "a", allowFailure: true }, { id: "b" }, { id: "c" }] };
  const failed = (id: string, at: string) => node({ id, status: "failed", finishedAt: at });
  const nodes = [failed("a", "2026-01-01"), failed("c", "2026-01-03"), failed("b", "2026-01-02")];
  expect(firstFailure({ definition: definition as unknown as Definition }, nodes)?.id).toBe("b");
  expect(firstFailure({ definition: definition as unknown as Definition }, [node()])).toBeNull();
});

test("the cause is the last failure, with the end of its log", () => {
  const events = [
    event("node.failed", 1, { data: { log: "first\n" } }),
    event("node.failed", 2, { data: { log: "one\ntwo\nthree\n" } }),
  ];
  expect(tailOf(causeOf(events, "a"), 2)).toEqual(["two", "three"]);
  expect(tailOf(null)).toEqual([]);
});

test("the cause of an item is its newest failure in that step", () => {
  const failed = (second: number, shard: number | null, nodeId = "a") =>
    event("node.failed", second, { shard, nodeId, data: { log: `at ${second}` } });
  const causes = itemCauses([failed(1, 0), failed(2, 7), failed(3, 7), failed(4, null), failed(5, 1, "b")], "a");
  expect([...causes].map(([item, { seq }]) => [item, seq])).toEqual([
    [0, 1],
    [7, 3],
  ]);
});

test("attempts stand one after another", () => {
  const events = [
    event("node.started", 1),
    event("node.retrying", 3),
    event("node.started", 5, { attempt: 2 }),
    event("node.succeeded", 9, { attempt: 2 }),
  ];
  expect(attemptsOf(node(), events)).toEqual([
    { number: 1, from: 1000, to: 3000, ended: "failed" },
    { number: 2, from: 5000, to: 9000, ended: "succeeded" },
  ]);
  expect(attemptsOf(node(), [])).toEqual([]);
});

test("only what differs is compared", () => {
  expect(compared({ a: 1, b: "x" }, { a: 1, b: "y", c: [2] })).toEqual([
    { name: "b", before: "x", after: "y" },
    { name: "c", before: "–", after: "[2]" },
  ]);
});

test("a message names the step, not its id", () => {
  const node = { id: "n_x7", name: "Add up" };
  expect(named("Step n_x7 failed: exit status 3", node)).toBe("“Add up” failed: exit status 3");
  expect(named("Step n_x77 failed", node)).toBe("Step n_x77 failed");
  expect(named("Step sum did not produce sum.txt", { id: "sum", name: "Sum" })).toBe("“Sum” did not produce sum.txt");
  expect(named('Step "Add up" exited with status 3', node)).toBe("“Add up” exited with status 3");
  expect(named('Step "Add" failed', node)).toBe('Step "Add" failed');
  expect(named("The machine was lost", null)).toBe("The machine was lost");
});

test("a message of an earlier version names the step, too", () => {
  expect(named("Node n_x7 failed", { id: "n_x7", name: "Add up" })).toBe("“Add up” failed");
  expect(named("Node sum failed", { id: "sum", name: "" })).toBe("Step sum failed");
});

test("a queued run says why it waits, and how many go first", () => {
  const why = (reason: string, message: string, ahead = 0) =>
    waitingText({ status: "queued", waiting: { reason, message, ahead } });
  expect(why("turn", "3 runs are before it.", 3)).toBe("Waiting: 3 runs are before it.");
  const room = "It starts when 2 vCPUs and 8 GB are free.";
  expect(why("no_room", room)).toBe(`Waiting: ${room}`);
  const share = "The team is at its limit while other teams wait.";
  expect(why("team_limit", share, 1)).toBe(`Waiting: ${share} 1 run is before it.`);
  // The row of the list may be older than the stream.
  const fetching = { fetchedBytes: 2 * 1024 ** 3, totalBytes: 12 * 1024 ** 3 };
  expect(
    waitingText({ status: "queued", waiting: { reason: "inputs", message: "They come.", ahead: 0, fetching } }),
  ).toBe("Waiting: They come. 2 GB of 12 GB fetched.");
  expect(waitingText({ status: "running", waiting: { reason: "no_room", message: room, ahead: 0 } })).toBeNull();
  expect(waitingText({ status: "queued", waiting: null })).toBeNull();
});

test("a step of a reported run that has ended is not started by an event of the past", () => {
  const ended = { ...node(), status: "cancelled" as const, finishedAt: null };
  expect(applyIfNewer(ended, event("node.started", 1), true)).toBe(ended);
  expect(applyIfNewer(ended, event("node.started", 1), false).status).toBe("running");
});
