import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Maximize2 } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { sizeOf } from "../../files/folder.ts";
import { Preview } from "../../files/Preview.tsx";
import { buttonClass } from "../../ui/Button.tsx";
import { bytes, plural } from "../../ui/format.ts";
import { Skeleton } from "../../ui/Skeleton.tsx";
import { outputsQuery, type Run } from "../queries.ts";
import { Report } from "./Report.tsx";
import { type Output, results, type Step, stepOf } from "./results.ts";

type Shown = Pick<Run, "id" | "status" | "nodes">;

/** Results shows the results of a completed run. */
export function Results({ run }: { run: Shown }) {
  const outputs = useQuery(outputsQuery(run.id, run.status, false));
  return (
    <ResultFiles
      outputs={outputs.data ?? []}
      steps={run.nodes}
      openReport={(output) => (
        <Link
          to="/runs/$runId/report"
          params={{ runId: run.id }}
          search={{ key: output.key }}
          className={buttonClass("secondary", "sm")}
        >
          <Maximize2 className="size-4" aria-hidden /> Open report
        </Link>
      )}
    />
  );
}

interface ResultFilesProps {
  /** All outputs that the table below lists. */
  outputs: readonly Output[];
  steps: readonly Step[];
  openReport: (output: Output) => ReactNode;
}

/** ResultFiles shows reports and images, and small texts and tables, with the names of their steps. */
export function ResultFiles({ outputs, steps, openReport }: ResultFilesProps) {
  const { reports, pictures, texts, left } = results(outputs);
  if (left === outputs.length) return null;
  const step = (output: Output) => (steps.length > 1 ? stepOf(output, steps) : null);
  return (
    <section aria-label="Results" className="mb-4 rounded-xl border bg-surface p-4">
      <h2 className="mb-3">Results</h2>
      <div className="space-y-5">
        {reports.map((output, at) => (
          <figure key={output.key}>
            <Caption output={output} step={step(output)}>
              {openReport(output)}
            </Caption>
            {at === 0 && output.reportUrl && (
              <WhenVisible height="32rem">
                <Report title={output.name} url={output.reportUrl} />
              </WhenVisible>
            )}
          </figure>
        ))}
        {pictures.length > 0 && (
          <ul
            aria-label="Images"
            className={`grid gap-3 ${pictures.length > 1 ? "grid-cols-2 md:grid-cols-3 lg:grid-cols-4" : ""}`}
          >
            {pictures.map((output) => (
              <li key={output.key} className="min-w-0">
                <a href={output.url} download={output.name} className="block" title={`Download ${output.name}`}>
                  <img
                    src={output.url}
                    alt={output.name}
                    loading="lazy"
                    className={`w-full rounded-lg border bg-[white] object-contain ${pictures.length > 1 ? "h-40" : "max-h-96"}`}
                  />
                  <span className="mt-1 block truncate text-[13px] text-muted">
                    {[step(output), output.name].filter(Boolean).join(" · ")}
                  </span>
                </a>
              </li>
            ))}
          </ul>
        )}
        {texts.map((output) => (
          <figure key={output.key}>
            <Caption output={output} step={step(output)} />
            <WhenVisible height="6rem">
              <Preview file={output} tall={false} />
            </WhenVisible>
          </figure>
        ))}
      </div>
      {left > 0 && <p className="mt-4 text-sm text-muted">{plural(left, "more file")} under Outputs.</p>}
    </section>
  );
}

function Caption({ output, step, children }: { output: Output; step: string | null; children?: ReactNode }) {
  return (
    <figcaption className="mb-1.5 flex items-center gap-2 text-sm">
      {step && <span className="min-w-0 truncate text-muted">{step} ·</span>}
      <span className="min-w-0 truncate font-medium">{output.name}</span>
      <span className="flex-1 whitespace-nowrap text-muted">{bytes(sizeOf(output))}</span>
      {children}
    </figcaption>
  );
}

/** WhenVisible renders its children once they are close to the visible area. */
function WhenVisible({ height, children }: { height: string; children: ReactNode }) {
  const place = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (!place.current) return;
    const watch = new IntersectionObserver((entries) => entries.some((each) => each.isIntersecting) && setSeen(true), {
      rootMargin: "300px",
    });
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  return seen ? (
    children
  ) : (
    <div ref={place} style={{ minHeight: height }}>
      <Skeleton className="h-24" />
    </div>
  );
}
