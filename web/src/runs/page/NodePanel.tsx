import { FileTerminal, ListChecks, Recycle, X } from "lucide-react";
import { lazy, Suspense } from "react";
import { useStore } from "zustand";
import { StatusPill } from "../../page/status.tsx";
import { Button, IconButton } from "../../ui/Button.tsx";
import { bytes, count, duration, plural } from "../../ui/format.ts";
import { Progress } from "../../ui/Progress.tsx";
import { isReported } from "../queries.ts";
import type { RunStore } from "../runStore.ts";
import { Fetching } from "./Fetching.tsx";
import { failedText } from "./items.ts";
import { NodePlacement } from "./Placement.tsx";
import { StepLink } from "./StepLink.tsx";

const NodeSoftware = lazy(() => import("./NodeSoftware.tsx"));

interface NodePanelProps {
  store: RunStore;
  id: string;
  onClose: () => void;
  onLog: () => void;
  onItems: () => void;
}

/** NodePanel shows the details of the selected step. */
export function NodePanel({ store, id, onClose, onLog, onItems }: NodePanelProps) {
  const node = useStore(store.state, (state) => state.nodes.get(id));
  const defined = store.run.definition.nodes?.find((each) => each.id === id);
  const ended = useStore(store.state, (state) => state.run.status === "failed" || state.run.status === "interrupted");
  const launcher = useStore(store.state, (state) => state.nodes.get(node?.launchedBy ?? ""));
  if (!node) return null;
  const own = !isReported(store.run) && !node.launchedBy;
  const facts: [string, string][] = [
    ...(node.attempt > 0 ? [["Attempt", String(node.attempt)] as [string, string]] : []),
    ...(node.exitCode !== null ? [["Exit status", String(node.exitCode)] as [string, string]] : []),
    ...(node.durationMs !== null ? [["Duration", duration(node.durationMs)] as [string, string]] : []),
    ...(node.peakMemBytes !== null ? [["Peak memory", bytes(node.peakMemBytes)] as [string, string]] : []),
    ...(node.cpuSeconds !== null ? [["CPU time", `${count(node.cpuSeconds)} s`] as [string, string]] : []),
  ];
  return (
    <section aria-label={`Step ${node.name || node.id}`} className="flex h-full flex-col overflow-y-auto p-4">
      <header className="mb-2 flex items-start gap-2">
        <h2 className="min-w-0 flex-1 break-words">{node.name || node.id}</h2>
        <IconButton size="sm" label="Close" icon={<X className="size-4" aria-hidden />} onClick={onClose} />
      </header>
      <div>
        <StatusPill status={node.status} />
      </div>
      {launcher && (
        <p className="mt-2 text-[13px] text-muted">
          A process of the pipeline that {launcher.name || launcher.id} runs.
        </p>
      )}
      {node.shards && (
        <div className="mt-3 text-[13px]">
          <Progress
            label="Items done"
            value={(node.shards.done / Math.max(1, node.shards.total)) * 100}
            tone={node.shards.failed > 0 ? "danger" : "ok"}
          />
          <p className="mt-1 text-muted">
            {failedText(node.shards) ?? `${count(node.shards.done)} of ${plural(node.shards.total, "item")} done`}
          </p>
        </div>
      )}
      <dl className="mt-3 grid grid-cols-[repeat(3,auto)] justify-start gap-x-5 gap-y-1 text-sm whitespace-nowrap">
        {facts.map(([term, value]) => (
          <div key={term}>
            <dt className="text-[13px] text-muted">{term}</dt>
            <dd className="tabular">{value}</dd>
          </div>
        ))}
      </dl>
      {node.status === "queued" && <Fetching runId={store.run.id} nodeId={id} />}
      {node.status === "queued" && node.waitsFor && (
        <p className="mt-3 rounded-lg bg-sunken px-3 py-2 text-[13px]">{node.waitsFor}</p>
      )}
      {!node.shards && node.attempt > 0 && !node.cached && <NodePlacement run={store.run.id} node={node} />}
      {(node.cached || node.cacheMiss) && (
        <p className="mt-3 flex gap-2 rounded-lg bg-sunken px-3 py-2 text-[13px]">
          <Recycle className="mt-0.5 size-4 shrink-0 text-muted" aria-hidden />
          {node.cached
            ? "Reused from an earlier run: the command, parameters and files are the same."
            : `Not reused: ${node.cacheMiss}`}
        </p>
      )}
      {defined?.environment && (
        <Suspense fallback={null}>
          <NodeSoftware runId={store.run.id} nodeId={id} />
        </Suspense>
      )}
      {defined?.command && (
        <details className="mt-3">
          <summary className="cursor-pointer text-sm">Command</summary>
          <pre tabIndex={0} className="mt-1 max-h-52 overflow-auto rounded-md bg-sunken p-2 text-xs">
            {defined.command}
          </pre>
        </details>
      )}
      <div className="mt-4 flex flex-wrap gap-2">
        {node.shards && (
          <Button size="sm" icon={<ListChecks className="size-4" aria-hidden />} onClick={onItems}>
            View items
          </Button>
        )}
        {own && (
          <Button size="sm" icon={<FileTerminal className="size-4" aria-hidden />} onClick={onLog}>
            View log
          </Button>
        )}
        {own && <StepLink run={store.run} node={id} continues={ended} />}
      </div>
    </section>
  );
}
