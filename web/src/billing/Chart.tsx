import { useState } from "react";
import type { Schemas } from "../api/client.ts";
import { credits, day, plural } from "../ui/format.ts";
import { nice } from "./model.ts";

type UsageDay = Schemas["UsageDay"];

const height = 180;

/** Chart is credits a day as bars: compute below, storage on top. The same numbers are in a table for those who cannot see it. */
export function Chart({ series }: { series: UsageDay[] }) {
  const [at, setAt] = useState<number | null>(null);
  const top = nice(Math.max(...series.map((each) => each.credits), 0));
  const shown = at === null ? null : series[at];
  const step = 1000 / series.length;
  return (
    <figure>
      <div className="grid grid-cols-[auto_1fr] gap-2">
        <div
          className="tabular flex flex-col justify-between text-right text-[13px] text-muted"
          style={{ height }}
          aria-hidden
        >
          <span className="-mt-2">{credits(top)}</span>
          <span>{credits(top / 2)}</span>
          <span className="-mb-2">0</span>
        </div>
        <svg
          viewBox={`0 0 1000 ${height}`}
          preserveAspectRatio="none"
          className="w-full"
          style={{ height }}
          role="img"
          aria-label={`Credits used per day over ${series.length} days`}
          onPointerLeave={() => setAt(null)}
          onPointerMove={(event) => {
            const box = event.currentTarget.getBoundingClientRect();
            setAt(
              Math.max(
                0,
                Math.min(series.length - 1, Math.floor(((event.clientX - box.left) / box.width) * series.length)),
              ),
            );
          }}
        >
          {[0, 0.5, 1].map((line) => (
            <line
              key={line}
              x1={0}
              x2={1000}
              y1={height * line}
              y2={height * line}
              stroke="var(--line)"
              vectorEffect="non-scaling-stroke"
            />
          ))}
          {series.map((each, index) => {
            const compute = (each.compute / top) * height;
            const storage = (each.storage / top) * height;
            const x = index * step + step * 0.14;
            const width = step * 0.72;
            return (
              <g key={each.date} opacity={at === null || at === index ? 1 : 0.5}>
                <rect x={x} width={width} y={height - compute} height={compute} fill="var(--accent)" />
                <rect x={x} width={width} y={height - compute - storage} height={storage} fill="var(--warn)" />
              </g>
            );
          })}
        </svg>
        <span />
        <div className="flex justify-between text-[13px] text-muted" aria-hidden>
          <span>{series[0] && day(series[0].date)}</span>
          <span>today</span>
        </div>
      </div>
      <figcaption className="mt-2 flex min-h-6 flex-wrap items-center gap-x-4 gap-y-1 text-[13px] text-muted">
        <span className="inline-flex items-center gap-1.5">
          <span className="size-2.5 rounded-sm bg-accent" /> Compute
        </span>
        <span className="inline-flex items-center gap-1.5">
          <span className="size-2.5 rounded-sm bg-warn" /> Storage
        </span>
        <span className="tabular">
          {shown
            ? `${day(shown.date)}: ${credits(shown.credits)} credits, ${plural(shown.runs, "run")}`
            : `${credits(series.reduce((sum, each) => sum + each.credits, 0))} credits in ${series.length} days`}
        </span>
      </figcaption>
      <details className="mt-1 text-[13px]">
        <summary className="cursor-pointer text-muted">Show as table</summary>
        <div className="mt-2 max-h-56 overflow-y-auto rounded-md border" tabIndex={0}>
          <table className="tabular w-full">
            <thead className="text-left text-muted">
              <tr>
                <th className="px-2.5 py-1 font-medium">Day</th>
                <th className="px-2.5 py-1 text-right font-medium">Runs</th>
                <th className="px-2.5 py-1 text-right font-medium">Compute</th>
                <th className="px-2.5 py-1 text-right font-medium">Storage</th>
              </tr>
            </thead>
            <tbody>
              {series.toReversed().map((each) => (
                <tr key={each.date} className="border-t">
                  <td className="px-2.5 py-1">{day(each.date)}</td>
                  <td className="px-2.5 py-1 text-right">{each.runs}</td>
                  <td className="px-2.5 py-1 text-right">{credits(each.compute)}</td>
                  <td className="px-2.5 py-1 text-right">{credits(each.storage)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
