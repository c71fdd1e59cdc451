import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { addressIn } from "../../files/addresses.ts";
import { filesByKeyQuery } from "../../files/queries.ts";
import { Copy } from "../../ui/Copy.tsx";
import { exact } from "../../ui/format.ts";
import type { Run } from "../queries.ts";

const Launch = lazy(async () => ({ default: (await import("./ReportedAbout.tsx")).Launch }));

const mostNamed = 100; // files of an input

/** named is the keys of the inputs that are shown by name. */
function named({ inputs }: Run): string[] {
  const keys = Object.values(inputs).flatMap((each) => [each].flat().slice(0, mostNamed));
  return keys.filter((key) => addressIn(key) === null);
}

/** Details lists the parameters and inputs of the run, and where it is stored. */
export function Details({ run }: { run: Run }) {
  const files = useQuery(filesByKeyQuery(named(run))).data;
  const given = (keys: string[]) => {
    const names = keys.slice(0, mostNamed).map((key) => files?.get(key)?.name ?? key);
    return names.join(", ") + (keys.length > mostNamed ? ` and ${keys.length - mostNamed} more` : "");
  };
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
              <dd className="min-w-0 break-all">{given([keys].flat())}</dd>
            </div>
          ))}
          {Object.keys(run.parameters).length + Object.keys(run.inputs).length === 0 && (
            <p className="text-muted">No parameters or inputs.</p>
          )}
        </dl>
      </section>
      {run.kind === "reported" && (
        <Suspense fallback={null}>
          <Launch run={run} />
        </Suspense>
      )}
    </div>
  );
}
