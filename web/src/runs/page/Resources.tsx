import { Download } from "lucide-react";
import { lazy, Suspense, useSyncExternalStore } from "react";
import { useStore } from "zustand";
import { active } from "../../page/status.tsx";
import { buttonClass } from "../../ui/Button.tsx";
import { bytes, count, duration } from "../../ui/format.ts";
import { Skeleton } from "../../ui/Skeleton.tsx";
import { Table, Td, Th } from "../../ui/Table.tsx";
import type { RunStore } from "../runStore.ts";

const Metrics = lazy(async () => ({ default: (await import("./ReportedAbout.tsx")).Metrics }));
const Plot = lazy(() => import("./Plot.tsx"));

/** Resources shows CPU and memory of the run, and the peaks of each step. */
export function Resources({ store }: { store: RunStore }) {
  const run = useStore(store.state, (state) => state.run);
  const nodes = useStore(store.state, (state) => state.nodes);
  const some = useSyncExternalStore(store.onSample, () => store.samples.length > 0);
  const rows = [...nodes.values()].filter((node) => node.peakMemBytes !== null || node.cpuSeconds !== null);
  const peak = Math.max(0, ...rows.map((node) => node.peakMemBytes ?? 0));
  const asked = run.compute.ramGb * 2 ** 30;
  return (
    <div className="space-y-4">
      {run.kind === "reported" ? (
        <Suspense fallback={<Skeleton className="h-60" />}>
          <Metrics run={run} />
        </Suspense>
      ) : some ? (
        <div className="rounded-lg border bg-surface p-3">
          <Suspense fallback={<Skeleton className="h-60" />}>
            <Plot store={store} />
          </Suspense>
        </div>
      ) : (
        <p className="text-sm text-muted">
          {active(run.status)
            ? "The plot appears after the first measurement."
            : "CPU and memory over time are shown live only; the totals of each step are kept."}
        </p>
      )}
      {!active(run.status) && peak > 0 && peak < asked / 4 && run.compute.ramGb > 2 && (
        <p className="text-sm">
          The run had {run.compute.ramGb} GB and used {bytes(peak)} at most: a smaller size would cost less.
        </p>
      )}
      {rows.length > 0 && (
        <Table
          label="Usage by step"
          head={
            <>
              <Th>Step</Th>
              <Th className="text-right">Peak memory</Th>
              <Th className="text-right">CPU time</Th>
              <Th className="text-right">Duration</Th>
            </>
          }
        >
          {rows.map((node) => (
            <tr key={node.id}>
              <Td>{node.name || node.id}</Td>
              <Td className="tabular text-right">{node.peakMemBytes === null ? "–" : bytes(node.peakMemBytes)}</Td>
              <Td className="tabular text-right">{node.cpuSeconds === null ? "–" : `${count(node.cpuSeconds)} s`}</Td>
              <Td className="tabular text-right">{node.durationMs === null ? "–" : duration(node.durationMs)}</Td>
            </tr>
          ))}
        </Table>
      )}
      <a className={buttonClass("secondary", "sm")} href={`/api/runs/${run.id}/tasks.csv`} download>
        <Download className="size-4" aria-hidden />
        Download tasks as CSV
      </a>
    </div>
  );
}
