import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Maximize2 } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Preview } from "../files/Preview.tsx";
import { buttonClass } from "../ui/Button.tsx";
import { bytes, plural } from "../ui/format.ts";
import { Skeleton } from "../ui/Skeleton.tsx";
import { outputsQuery } from "./queries.ts";
import { Report } from "./Report.tsx";
import { type Output, results } from "./results.ts";

/** Results is what a run made, without a click: its reports, pictures, and what is small enough to read here. */
export function Results({ runId, status }: { runId: string; status: string }) {
  const outputs = useQuery(outputsQuery(runId, status, false));
  const { reports, pictures, texts, left } = results(outputs.data ?? []);
  if (reports.length + pictures.length + texts.length === 0) return null;
  return (
    <section aria-label="Results" className="mb-4 rounded-xl border bg-surface p-4">
      <h2 className="mb-3">Results</h2>
      <div className="space-y-5">
        {reports.map((output, at) => (
          <figure key={output.key}>
            <Caption output={output}>
              <Link
                to="/runs/$runId/report"
                params={{ runId }}
                search={{ key: output.key }}
                className={buttonClass("secondary", "sm")}
              >
                <Maximize2 className="size-4" aria-hidden /> Open report
              </Link>
            </Caption>
            {at === 0 && output.reportUrl && (
              <WhenSeen height="32rem">
                <Report title={output.name} url={output.reportUrl} />
              </WhenSeen>
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
                  <span className="mt-1 block truncate text-[13px] text-muted">{output.name}</span>
                </a>
              </li>
            ))}
          </ul>
        )}
        {texts.map((output) => (
          <figure key={output.key}>
            <Caption output={output} />
            <WhenSeen height="6rem">
              <Preview file={output} tall={false} />
            </WhenSeen>
          </figure>
        ))}
      </div>
      {left > 0 && <p className="mt-4 text-sm text-muted">{plural(left, "more file")} under Outputs.</p>}
    </section>
  );
}

function Caption({ output, children }: { output: Output; children?: ReactNode }) {
  return (
    <figcaption className="mb-1.5 flex items-center gap-2 text-sm">
      <span className="min-w-0 truncate font-medium">{output.name}</span>
      <span className="flex-1 whitespace-nowrap text-muted">{bytes(output.size)}</span>
      {children}
    </figcaption>
  );
}

/** WhenSeen waits with what is in it until somebody scrolls near. */
function WhenSeen({ height, children }: { height: string; children: ReactNode }) {
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
