// The live state of one run. Each node is its own object, which
// is replaced when it changes: a message about one node renders that node.
import { createStore } from "zustand/vanilla";
import { type Api, ask } from "../api/client.ts";
import type { RunMessage } from "../api/stream.ts";
import { active } from "../page/status.tsx";
import { isReported, type Run, type RunEvent, type RunNode } from "./queries.ts";

export interface Sample {
  at: number;
  cpuPercent: number;
  memBytes: number;
}

export interface RunState {
  /** The run without its nodes and logs. */
  run: Omit<Run, "nodes" | "logs">;
  nodes: Map<string, RunNode>;
  events: RunEvent[];
  step: string | null;
}

const statusOf: Partial<Record<string, RunNode["status"]>> = {
  "node.started": "running",
  "node.retrying": "retrying",
  "node.succeeded": "succeeded",
  "node.cached": "succeeded",
  "node.failed": "failed",
  "node.skipped": "skipped",
};

/** applyEvent returns the node after an event. An event of one item only starts the node. */
export function applyEvent(node: RunNode, event: RunEvent): RunNode {
  const status = statusOf[event.type];
  if (!status) return node;
  if (event.shard !== null) {
    const waiting = node.status === "pending" || node.status === "queued";
    return waiting ? { ...node, status: "running", waitsFor: null, startedAt: node.startedAt ?? event.at } : node;
  }
  const next: RunNode = { ...node, status, waitsFor: null, attempt: event.attempt ?? node.attempt };
  if (status === "running") next.startedAt ??= event.at;
  if (event.type === "node.cached") next.cached = true;
  if (status === "succeeded" || status === "failed" || status === "skipped") {
    next.finishedAt = event.at;
    if (next.startedAt) next.durationMs = Date.parse(event.at) - Date.parse(next.startedAt);
  }
  if (typeof event.data.exitCode === "number") next.exitCode = event.data.exitCode;
  return next;
}

/** nodeOf is a node as it is shown: what still waits when its run has ended never runs. */
function nodeOf(run: Pick<Run, "status">, node: RunNode): RunNode {
  return node.status === "pending" && !active(run.status) ? { ...node, status: "skipped" } : node;
}

/** LogListener gets text of the log, where it begins, and where the log goes on after it. */
type LogListener = (text: string, offset: number, next?: number) => void;

export class RunStore {
  readonly state;
  readonly samples: Sample[] = [];
  private readonly sampleListeners = new Set<() => void>();
  private seq = 0;
  private reading = false;
  private wanted = 0;
  private readonly logListeners = new Set<LogListener>();

  constructor(
    private readonly api: Api,
    readonly run: Run,
  ) {
    const { nodes, logs: _, ...rest } = run;
    this.state = createStore<RunState>(() => ({
      run: rest,
      nodes: new Map(nodes.map((node) => [node.id, nodeOf(run, node)])),
      events: [],
      step: null,
    }));
    void this.readEvents(0);
  }

  /** refresh takes the run as the API returned it, with values that the stream lacks, such as peaks and cache misses. */
  refresh(run: Run): void {
    const { nodes, logs: _, ...rest } = run;
    this.state.setState((old) => ({
      run: { ...rest, progressPercent: Math.max(rest.progressPercent, old.run.progressPercent) },
      nodes: new Map(
        nodes.map((each) => {
          const was = old.nodes.get(each.id);
          const node = nodeOf(run, each);
          return [node.id, was && JSON.stringify(was) === JSON.stringify(node) ? was : node];
        }),
      ),
    }));
  }

  onLog(listener: LogListener): () => void {
    this.logListeners.add(listener);
    return () => this.logListeners.delete(listener);
  }

  onSample = (listener: () => void): (() => void) => {
    this.sampleListeners.add(listener);
    return () => this.sampleListeners.delete(listener);
  };

  /** receive applies a message of the stream. */
  receive(message: RunMessage): void {
    if (message.type === "connected") return;
    const { status, progressPercent, durationMs, creditsUsed, errorMessage, waiting } = message;
    this.state.setState((old) => ({
      run: {
        ...old.run,
        ...(status && { status }),
        ...(progressPercent !== undefined && { progressPercent }),
        ...(durationMs !== undefined && { durationMs }),
        ...(creditsUsed !== undefined && { creditsUsed }),
        ...(errorMessage !== undefined && { errorMessage }),
        ...(waiting !== undefined && { waiting }),
      },
      ...(message.currentStep !== undefined && { step: message.currentStep }),
    }));
    if (message.type === "progress" && message.logs && message.logOffset !== undefined) {
      for (const listener of this.logListeners) listener(message.logs, message.logOffset, message.logEnd);
    }
    if (message.type === "snapshot") for (const listener of this.logListeners) listener("", -1);
    const { cpuPercent, memBytes } = message.resources ?? {};
    if (cpuPercent !== undefined || memBytes !== undefined) {
      this.samples.push({ at: Date.now() / 1000, cpuPercent: cpuPercent ?? 0, memBytes: memBytes ?? 0 });
      if (this.samples.length > 7200) this.samples.splice(0, 1200);
      for (const listener of this.sampleListeners) listener();
    }
    if (message.seq !== undefined && message.seq > this.seq) void this.readEvents(message.seq);
  }

  /** readEvents reads the events up to a number. A message carries the last number only. */
  async readEvents(upTo: number): Promise<void> {
    this.wanted = Math.max(this.wanted, upTo);
    if (this.reading) return;
    this.reading = true;
    try {
      for (let more = true; more; ) {
        const upTo = this.wanted;
        const query = { after_seq: this.seq };
        const { events, hasMore } = await ask(
          this.api.GET("/api/runs/{id}/events", { params: { path: { id: this.run.id }, query } }),
        );
        this.take(events);
        // A message that arrived during the read may name newer events.
        more = hasMore || this.wanted > upTo || (this.wanted > this.seq && events.length > 0);
      }
    } catch {
      // The next message asks again.
    } finally {
      this.reading = false;
    }
  }

  private take(events: RunEvent[]): void {
    if (events.length === 0) return;
    this.seq = events.at(-1)?.seq ?? this.seq;
    this.state.setState((old) => {
      const nodes = new Map(old.nodes);
      for (const event of events) {
        const node = event.nodeId === null ? undefined : nodes.get(event.nodeId);
        if (node) nodes.set(node.id, applyIfNewer(node, event, isReported(this.run) || Boolean(node.launchedBy)));
      }
      return { nodes, events: [...old.events, ...events] };
    });
  }
}

const over: RunNode["status"][] = ["succeeded", "failed", "skipped", "cancelled"];

/**
 * applyIfNewer applies an event unless the node's state is newer. The times of a reported run come from
 * another clock and cannot be compared with our events: there, a step that has ended stays so until the run is read again.
 */
export function applyIfNewer(node: RunNode, event: RunEvent, reported: boolean): RunNode {
  if (reported && over.includes(node.status)) return node;
  if (node.finishedAt && Date.parse(event.at) < Date.parse(node.finishedAt)) return node;
  const next = applyEvent(node, event);
  return JSON.stringify(next) === JSON.stringify(node) ? node : next;
}
