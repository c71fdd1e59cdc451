import type { RunEvent, RunNode } from "../queries.ts";

export interface Attempt {
  number: number;
  from: number;
  to: number | null;
  ended: "succeeded" | "failed" | "running" | "cached";
}

/** attemptsOf lists when each attempt of a node began and ended. Without events, it uses the times of the node. */
export function attemptsOf(node: RunNode, events: readonly RunEvent[]): Attempt[] {
  const out: Attempt[] = [];
  for (const event of events) {
    if (event.nodeId !== node.id || event.shard !== null) continue;
    const at = Date.parse(event.at);
    const last = out.at(-1);
    if (event.type === "node.started") out.push({ number: event.attempt ?? 1, from: at, to: null, ended: "running" });
    else if (last && last.to === null) {
      if (event.type === "node.retrying" || event.type === "node.failed")
        Object.assign(last, { to: at, ended: "failed" });
      if (event.type === "node.succeeded") Object.assign(last, { to: at, ended: "succeeded" });
    } else if (event.type === "node.cached") out.push({ number: 1, from: at, to: at, ended: "cached" });
  }
  if (out.length === 0 && node.startedAt) {
    const to = node.finishedAt ? Date.parse(node.finishedAt) : null;
    const ended = node.cached ? "cached" : to === null ? "running" : node.status === "failed" ? "failed" : "succeeded";
    out.push({ number: node.attempt, from: Date.parse(node.startedAt), to, ended });
  }
  return out;
}
