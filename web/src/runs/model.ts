// Rules of the run page, without a browser.
import { bytes, plural } from "../ui/format.ts";
import type { Definition } from "../workflows/queries.ts";
import type { Run, RunEvent, RunNode } from "./runStore.ts";

/** waits is why a queued run has not started; null for any other. */
export function waits({ status, waiting }: Pick<Run, "status" | "waiting">): string | null {
  if (status !== "queued" || !waiting) return null;
  const { reason, message, ahead, fetching } = waiting;
  const far = fetching ? ` ${bytes(fetching.fetchedBytes)} of ${bytes(fetching.totalBytes)} are here.` : "";
  // The message of one that waits for its turn has the number already.
  const first = reason === "turn" || ahead === 0 ? "" : ` ${plural(ahead, "run is", "runs are")} before it.`;
  return `Waiting: ${message}${far}${first}`;
}

/** kin is a node with everything before and after it. */
export function kin(definition: Definition, id: string): Set<string> {
  const out = new Set([id]);
  const walk = (from: "source" | "target", to: "source" | "target") => {
    const next = new Map<string, string[]>();
    for (const edge of definition.edges ?? []) {
      const list = next.get(edge[from]);
      if (list) list.push(edge[to]);
      else next.set(edge[from], [edge[to]]);
    }
    const seen = new Set([id]);
    const waiting = [id];
    for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
      for (const other of next.get(each) ?? []) {
        if (seen.has(other)) continue;
        seen.add(other);
        out.add(other);
        waiting.push(other);
      }
    }
  };
  walk("source", "target");
  walk("target", "source");
  return out;
}

/** culprit is the step that ended the run: the first that failed and was not allowed to. */
export function culprit(run: Pick<Run, "definition">, nodes: Iterable<RunNode>): RunNode | null {
  const allowed = new Set((run.definition.nodes ?? []).filter((node) => node.allowFailure).map((node) => node.id));
  const failed = [...nodes].filter((node) => node.status === "failed" && !node.launchedBy && !allowed.has(node.id));
  return failed.toSorted((a, b) => (a.finishedAt ?? "").localeCompare(b.finishedAt ?? ""))[0] ?? null;
}

/** causeOf is the event that tells why a node failed. */
export function causeOf(events: readonly RunEvent[], nodeId: string): RunEvent | null {
  return events.findLast((event) => event.type === "node.failed" && event.nodeId === nodeId) ?? null;
}

/** tailOf is the end of a failed node's log, as its event carries it. */
export function tailOf(event: RunEvent | null, lines = 20): string[] {
  const text = typeof event?.data.log === "string" ? event.data.log : "";
  return text
    .replace(/\n+$/, "")
    .split("\n")
    .slice(-lines)
    .filter((line, at) => at > 0 || line !== "");
}

/** named puts a step's name where the server's message has its id. */
export function named(message: string, node: Pick<RunNode, "id" | "name"> | null): string {
  const start = `Node ${node?.id}`;
  if (!node?.name || !message.startsWith(start) || /^[\w-]/.test(message.slice(start.length))) return message;
  return `“${node.name}”${message.slice(start.length)}`;
}

const advice: Record<string, string> = {
  node_failed: "Check the last lines of the log, edit the step, and run it again.",
  oom: "It needed more memory than it had. Give the step more, or choose a larger size for the run.",
  node_timeout: "It took longer than its time limit. Raise the limit of the step, or give it less to do.",
  source_unavailable: "Its code couldn't be fetched from Git. Check the address, the branch and the connection.",
  image_unavailable: "Its container image couldn't be pulled. Check the name and tag, and that the registry is public.",
  environment_failed:
    "Its software couldn't be installed. The message says which package is at fault; the whole log is on the step.",
  input_missing: "A file it needs was deleted. Upload it again, or choose another one.",
  output_missing: "The command succeeded but didn't create a declared output. Check the output's path.",
  output_mismatch: "A file changed while it was stored. Retrying usually helps.",
  worker_lost: "The machine was lost. Retry: the workflow isn't at fault.",
  plan_time_limit: "The plan's time limit was reached. Choose a larger size, split the work, or change the plan.",
  budget_exhausted:
    "A budget, or the limit of the run, is spent. Raise it in Billing, then retry: completed steps are reused.",
  credits_exhausted: "The team has no credits left. Add credits, then retry: completed steps are reused.",
  internal: "An internal error. Retry, and quote the run ID if it happens again.",
};

export function nextStep(errorCode: string | null): string {
  return advice[errorCode ?? ""] ?? "Look at the last lines of its log, then retry.";
}

export interface Attempt {
  number: number;
  from: number;
  to: number | null;
  ended: "succeeded" | "failed" | "running" | "cached";
}

/** attemptsOf is when each try of a node began and ended; a node without events is what its row says. */
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

export interface Row {
  name: string;
  before: string;
  after: string;
}

/** compared is the values of two runs side by side, those that differ. */
export function compared(before: Record<string, unknown>, after: Record<string, unknown>): Row[] {
  const text = (value: unknown) =>
    value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .toSorted()
    .map((name) => ({ name, before: text(before[name]), after: text(after[name]) }))
    .filter((row) => row.before !== row.after);
}
