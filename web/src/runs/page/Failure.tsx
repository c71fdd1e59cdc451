import { CircleX, FileTerminal, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { useStore } from "zustand";
import { Button } from "../../ui/Button.tsx";
import { Copy } from "../../ui/Copy.tsx";
import { firstLine } from "../errorMessage.ts";
import { plain } from "../log/ansi.ts";
import { LogLines } from "../log/LogLines.tsx";
import { isReported } from "../queries.ts";
import type { RunStore } from "../runStore.ts";
import { FailedItems } from "./FailedItems.tsx";
import { causeOf, firstFailure, named, nextStep, tailOf } from "./failure.ts";
import { failedText } from "./items.ts";
import { failedProcesses } from "./processes.ts";
import { StepLink } from "./StepLink.tsx";
import { Suggestions } from "./Suggestions.tsx";

/** Failure says what went wrong, where, and what to do next. */
export function Failure({
  store,
  onLog,
  retry,
}: {
  store: RunStore;
  onLog: (node: string | null, item?: number) => void;
  retry: ReactNode;
}) {
  const run = useStore(store.state, (state) => state.run);
  const nodes = useStore(store.state, (state) => state.nodes);
  const events = useStore(store.state, (state) => state.events);
  const node = firstFailure(run, nodes.values());
  const event = node ? causeOf(events, node.id) : null;
  const tail = tailOf(event);
  const items = isReported(run) ? null : failedText(node?.shards ?? null);
  const report = [
    `Run ${run.id} of ${run.workflowName} (version ${run.workflowRevision}): ${run.status}`,
    run.errorMessage ?? "",
    node && `Step ${node.name || node.id} (${node.id}), attempt ${node.attempt}, exit status ${node.exitCode ?? "–"}`,
    ...tail.map(plain),
  ]
    .filter(Boolean)
    .join("\n");
  const failed = run.status === "failed";
  const processes = failedProcesses(nodes.values());
  const [first, rest] = firstLine(run.errorMessage ?? "");
  return (
    <section
      aria-label="What went wrong"
      className={`mb-4 rounded-xl border p-4 ${failed ? "border-danger/40 bg-danger-soft" : "border-warn/40 bg-warn-soft"}`}
    >
      <h2 className="flex items-start gap-2">
        {failed ? (
          <CircleX className="mt-0.5 size-5 shrink-0 text-danger" aria-hidden />
        ) : (
          <TriangleAlert className="mt-0.5 size-5 shrink-0 text-warn" aria-hidden />
        )}
        <span className="min-w-0 break-words">{first ? named(first, node) : "The run didn't complete"}</span>
      </h2>
      {node && (
        <p className="mt-1 text-sm">
          Step <strong>{node.name || node.id}</strong>
          {items ? `: ${items}` : `, attempt ${node.attempt}`}
          {!items && node.exitCode !== null && <>, exit status {node.exitCode}</>}
        </p>
      )}
      {processes.length > 0 && (
        <p className="mt-1 text-sm">
          Failed in its pipeline:{" "}
          {processes
            .slice(0, 5)
            .map((each) => each.name || each.id)
            .join(", ")}
          {processes.length > 5 && ` and ${processes.length - 5} more`}. Their tasks are under Items.
        </p>
      )}
      {rest && (
        <pre tabIndex={0} className="mt-3 max-h-64 overflow-auto rounded-lg border bg-surface p-3 text-[12.5px]">
          {rest}
        </pre>
      )}
      {items && node ? (
        <FailedItems store={store} node={node} onLog={(item) => onLog(node.id, item)} />
      ) : (
        tail.length > 0 && (
          <div className="mt-3">
            <LogLines lines={tail} />
          </div>
        )
      )}
      <Suggestions run={run} />
      <p className="mt-3 text-sm">
        {isReported(run)
          ? "Check the task's script and work folder under Items, fix the cause, and run the pipeline again."
          : nextStep(run.errorCode)}{" "}
        <a href="/help/errors#a-run-that-did-not-complete" className="underline">
          Errors and what to do
        </a>
      </p>
      <div className="mt-3 flex flex-wrap gap-2">
        {node && !isReported(run) && <StepLink run={run} node={node.id} continues look="primary" />}
        {retry}
        <Button
          size="sm"
          icon={<FileTerminal className="size-4" aria-hidden />}
          onClick={() => (isReported(run) ? onLog(null) : onLog(node?.id ?? null, event?.shard ?? undefined))}
        >
          View in log
        </Button>
        <Copy text={report} words="Copy error report" />
      </div>
    </section>
  );
}
