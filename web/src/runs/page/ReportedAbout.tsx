import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { active } from "../../page/status.tsx";
import { Select } from "../../ui/Field.tsx";
import { exact } from "../../ui/format.ts";
import { Notice } from "../../ui/Notice.tsx";
import type { Run } from "../queries.ts";
import { boxOf, type Metric, measured, measures, reportedQuery } from "./reported.ts";

type Given = Pick<Run, "id" | "status">;

/** LeftOut says which parts of a reported run were not stored. */
export function LeftOut({ run }: { run: Given }) {
  const about = useQuery(reportedQuery(run.id, active(run.status)));
  if (!about.data?.leftOut) return null;
  return (
    <Notice tone="warn" title="Not all of this run is shown" className="mb-4">
      {about.data.leftOut}
    </Notice>
  );
}

/** Launch shows how and where the engine was started, as it reported. */
export function Launch({ run }: { run: Given }) {
  const about = useQuery(reportedQuery(run.id, active(run.status)));
  if (!about.data) return null;
  const { engine, engineVersion, lastHeardAt, details } = about.data;
  const rows: [string, string][] = [
    ["Engine", engineVersion ? `${engine} ${engineVersion}` : engine],
    ["Last report", exact(lastHeardAt)],
    ...Object.entries(details).filter(([name]) => name !== "configText"),
  ];
  return (
    <section className="md:col-span-2">
      <h2 className="mb-2">Where it runs</h2>
      <dl className="space-y-1.5 text-sm">
        {rows.map(([term, value]) => (
          <div key={term} className="flex gap-3">
            <dt className="w-32 shrink-0 text-muted">{term}</dt>
            <dd className="min-w-0 break-all whitespace-pre-wrap">{value}</dd>
          </div>
        ))}
      </dl>
      {details.configText && (
        <details className="mt-3">
          <summary className="cursor-pointer text-sm">Configuration</summary>
          <pre tabIndex={0} className="mt-1 max-h-72 overflow-auto rounded-md bg-sunken p-2 text-xs">
            {details.configText}
          </pre>
        </details>
      )}
    </section>
  );
}

/** Metrics shows the resources that the tasks of each step used, as measured by the engine. */
export function Metrics({ run }: { run: Given }) {
  const about = useQuery(reportedQuery(run.id, active(run.status)));
  const [chosen, setChosen] = useState("");
  if (!about.data) return null;
  const list = measured(about.data.metrics);
  const of = list.find((each) => each === chosen) ?? list[0];
  const measure = of === undefined ? undefined : measures[of];
  if (of === undefined || measure === undefined)
    return (
      <p className="text-sm text-muted">
        {active(run.status)
          ? "Nextflow reports the resources its processes used when the run ends. See each task's details for its own."
          : "No resource usage by step was reported. See each task's details for its own."}
      </p>
    );
  const rows = about.data.metrics.filter((metric) => metric.of === of);
  const most = Math.max(...rows.map((metric) => metric.max));
  return (
    <section aria-label="Resources by step" className="rounded-lg border bg-surface p-3">
      <Select
        aria-label="Metric"
        className="h-8.5! w-auto!"
        value={of}
        onChange={(event) => setChosen(event.target.value)}
      >
        {list.map((each) => (
          <option key={each} value={each}>
            {measures[each]?.label}
          </option>
        ))}
      </Select>
      <ul className="mt-3 max-h-[32rem] space-y-2 overflow-y-auto text-sm">
        {rows.map((metric) => (
          <Row key={metric.node} metric={metric} most={most} text={measure.text} />
        ))}
      </ul>
      <p className="mt-2 text-[13px] text-muted">
        Each line spans the lowest to the highest value of a step's tasks. The box holds the middle half; the mark is
        the median.
      </p>
    </section>
  );
}

function Row({ metric, most, text }: { metric: Metric; most: number; text: (value: number) => string }) {
  const box = boxOf(metric, most);
  const words = `minimum ${text(metric.min)}, median ${text(metric.median)}, maximum ${text(metric.max)}`;
  return (
    <li className="grid items-center gap-x-3 md:grid-cols-[14rem_1fr_7rem]">
      <span className="truncate" title={metric.node}>
        {metric.node}
      </span>
      <svg
        viewBox="0 0 100 10"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${metric.node}: ${words}`}
        className="h-4 w-full"
      >
        <title>{words}</title>
        <rect x={box.min} y="4.5" width={Math.max(0.3, box.max - box.min)} height="1" fill="var(--muted)" />
        <rect x={box.q1} y="1.5" width={Math.max(0.3, box.q3 - box.q1)} height="7" fill="var(--info)" opacity="0.45" />
        <rect x={Math.min(99.5, box.median)} y="0.5" width="0.5" height="9" fill="var(--accent)" />
      </svg>
      <span className="tabular text-muted md:text-right">{text(metric.median)}</span>
    </li>
  );
}
