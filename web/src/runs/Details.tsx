import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { filesQuery } from "../files/queries.ts";
import { Copy } from "../ui/Copy.tsx";
import { exact } from "../ui/format.ts";
import type { Run } from "./runStore.ts";

const Said = lazy(async () => ({ default: (await import("./ReportedAbout.tsx")).Said }));

/** Details is what the run was given, and where it lies. */
export function Details({ run }: { run: Run }) {
  const files = useQuery(filesQuery);
  const nameOf = (key: string) => files.data?.find((file) => file.key === key)?.name ?? key;
  const rows: [string, string][] = [
    ["Run", run.id],
    ["Submitted", exact(run.createdAt)],
    ["Started", run.startedAt ? exact(run.startedAt) : "–"],
    ["Finished", run.finishedAt ? exact(run.finishedAt) : "–"],
    ...(run.kind === "reported" ? [] : [["Output location", run.outputLocation ?? "–"] as [string, string]]),
  ];
  const command = `curl ${location.origin}/api/runs/${run.id} -H "Authorization: Bearer $MILLRACE_TOKEN"`;
  return (
    <div className="grid gap-6 md:grid-cols-2">
      <section>
        <h2 className="mb-2">This run</h2>
        <dl className="space-y-1.5 text-sm">
          {rows.map(([term, value]) => (
            <div key={term} className="flex gap-3">
              <dt className="w-32 shrink-0 text-muted">{term}</dt>
              <dd className="min-w-0 break-all">{value}</dd>
            </div>
          ))}
        </dl>
        <p className="mt-3">
          <Copy text={command} words="Copy as curl" />
        </p>
      </section>
      <section>
        <h2 className="mb-2">Parameters and inputs</h2>
        <dl className="space-y-1.5 text-sm">
          {Object.entries(run.parameters).map(([name, value]) => (
            <div key={name} className="flex gap-3">
              <dt className="w-40 shrink-0 font-mono text-[13px] text-muted">{name}</dt>
              <dd className="min-w-0 break-all">{typeof value === "string" ? value : JSON.stringify(value)}</dd>
            </div>
          ))}
          {Object.entries(run.inputs).map(([name, keys]) => (
            <div key={name} className="flex gap-3">
              <dt className="w-40 shrink-0 font-mono text-[13px] text-muted">{name}</dt>
              <dd className="min-w-0 break-all">{[keys].flat().map(nameOf).join(", ")}</dd>
            </div>
          ))}
          {Object.keys(run.parameters).length + Object.keys(run.inputs).length === 0 && (
            <p className="text-muted">No parameters or inputs.</p>
          )}
        </dl>
      </section>
      {run.kind === "reported" && (
        <Suspense fallback={null}>
          <Said run={run} />
        </Suspense>
      )}
    </div>
  );
}
