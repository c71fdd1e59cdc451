// Why a run failed, in words.
import type { Run, RunEvent, RunNode } from "../queries.ts";

/** firstFailure is the step that ended the run: the first that failed and was not allowed to. */
export function firstFailure(run: Pick<Run, "definition">, nodes: Iterable<RunNode>): RunNode | null {
  const allowed = new Set((run.definition.nodes ?? []).filter((node) => node.allowFailure).map((node) => node.id));
  const failed = [...nodes].filter((node) => node.status === "failed" && !node.launchedBy && !allowed.has(node.id));
  return failed.toSorted((a, b) => (a.finishedAt ?? "").localeCompare(b.finishedAt ?? ""))[0] ?? null;
}

/** causeOf is the event with the reason why a node failed. */
export function causeOf(events: readonly RunEvent[], nodeId: string): RunEvent | null {
  return events.findLast((event) => event.type === "node.failed" && event.nodeId === nodeId) ?? null;
}

/** itemCauseOf is the event with the reason why one item of a node failed. */
export function itemCauseOf(events: readonly RunEvent[], nodeId: string, item: number): RunEvent | null {
  return (
    events.findLast((event) => event.type === "node.failed" && event.nodeId === nodeId && event.shard === item) ?? null
  );
}

/** itemCauses is, by item, the event with the reason why it failed. */
export function itemCauses(events: readonly RunEvent[], nodeId: string): Map<number, RunEvent> {
  return new Map(
    events.flatMap((event): [number, RunEvent][] =>
      event.type === "node.failed" && event.nodeId === nodeId && event.shard !== null ? [[event.shard, event]] : [],
    ),
  );
}

/** tailOf is the last lines of a failed node's log, from its event. */
export function tailOf(event: RunEvent | null, lines = 20): string[] {
  const text = typeof event?.data.log === "string" ? event.data.log : "";
  return text
    .replace(/\n+$/, "")
    .split("\n")
    .slice(-lines)
    .filter((line, at) => at > 0 || line !== "");
}

/** named has the server's message call a step by its name, or "Step" and its id where it has none. */
export function named(message: string, node: Pick<RunNode, "id" | "name"> | null): string {
  if (!node) return message;
  // Runs of earlier versions say Node.
  const called = [node.id, JSON.stringify(node.name)];
  const start = called
    .flatMap((name) => [`Step ${name}`, `Node ${name}`])
    .find((each) => message.startsWith(each) && !/^[\w-]/.test(message.slice(each.length)));
  if (start === undefined) return message;
  return `${node.name ? `“${node.name}”` : `Step ${node.id}`}${message.slice(start.length)}`;
}

const advice: Record<string, string> = {
  node_failed: "Check the last lines of the log, edit the step, and run it again.",
  oom: "The step ran out of memory. Give it more, or choose a larger size for the run.",
  node_timeout: "The step exceeded its time limit. Raise the limit, or split the work.",
  source_unavailable: "The code couldn't be fetched from Git. Check the address, the branch and the connection.",
  image_unavailable: "The container image couldn't be pulled. Check the name and tag, and that the registry is public.",
  environment_failed: "The packages couldn't be installed. The message names the package; the step shows the full log.",
  input_missing: "An input file was deleted. Upload it again, or choose another one.",
  output_missing: "The command succeeded but didn't create a declared output. Check the output's path.",
  output_mismatch: "A file changed while it was being stored. Retrying usually helps.",
  worker_lost: "The machine was lost. Retry: the workflow isn't the cause.",
  plan_time_limit: "The plan's time limit was reached. Choose a larger size, split the work, or change the plan.",
  budget_exhausted:
    "A budget or the run's spending limit is used up. Raise it, then retry: completed steps are reused.",
  quota_exhausted: "A quota of vCPU hours is used up. It renews next month, or an operator can raise it.",
  credits_exhausted: "The team has no credits left. Add credits, then retry: completed steps are reused.",
  internal: "An internal error. Retry, and quote the run ID if it happens again.",
};

export function nextStep(errorCode: string | null): string {
  return advice[errorCode ?? ""] ?? "Look at the last lines of its log, then retry.";
}
