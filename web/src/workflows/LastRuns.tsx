import { Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client.ts";
import { looks } from "../page/status.tsx";
import { classes } from "../ui/classes.ts";
import { duration } from "../ui/format.ts";
import { Tooltip } from "../ui/Tooltip.tsx";

type RunBrief = Schemas["RunBrief"];

// A failed run has a notch, one that was stopped is hollow: the shape tells
// what the colour does.
const shapes: Partial<Record<RunBrief["status"], string>> = {
  failed: "[clip-path:polygon(0_35%,50%_0,100%_35%,100%_100%,0_100%)]",
  interrupted: "[clip-path:polygon(0_35%,50%_0,100%_35%,100%_100%,0_100%)]",
};

/** LastRuns is up to ten runs as bars, the newest on the right: as tall as they took, coloured and shaped by how they ended. */
export function LastRuns({ runs }: { runs: RunBrief[] }) {
  if (runs.length === 0) return <span className="text-[13px] text-muted">Never run</span>;
  const longest = Math.max(1, ...runs.map((run) => run.durationMs ?? 0));
  return (
    <div className="flex h-7 items-end gap-0.5">
      {runs.toReversed().map((run) => {
        const look = looks[run.status];
        const height = 30 + 70 * Math.sqrt((run.durationMs ?? longest / 2) / longest);
        const label = `${look.word}${run.durationMs === null ? "" : `, ${duration(run.durationMs)}`}`;
        return (
          <Tooltip key={run.id} text={label}>
            <Link
              to="/runs/$runId"
              params={{ runId: run.id }}
              aria-label={label}
              className="flex h-full w-2.5 items-end rounded-sm hover:opacity-75"
            >
              <span
                className={classes(
                  "block w-full rounded-sm",
                  shapes[run.status],
                  run.status === "cancelled" && "border border-muted",
                  (run.status === "running" || run.status === "queued") && "animate-[breathe_1.6s_infinite]",
                )}
                style={{ height: `${height}%`, ...(run.status !== "cancelled" && { background: look.color }) }}
              />
            </Link>
          </Tooltip>
        );
      })}
    </div>
  );
}
