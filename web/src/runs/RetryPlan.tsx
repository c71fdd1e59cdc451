import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client.ts";
import { sentence } from "../api/failure.ts";
import { plural } from "../ui/format.ts";

type Retry = Schemas["RetryRun"];
type Node = Schemas["RetryPreviewNode"];

const previewQuery = (runId: string, retry: Retry, revision: number | null) =>
  queryOptions({
    queryKey: ["retry-preview", runId, retry, revision],
    queryFn: () => ask(api.POST("/api/runs/{id}/retry/preview", { params: { path: { id: runId } }, body: retry })),
  });

const most = 6;

/** RetryPlan says, before a retry is started, which steps it reuses, which it runs, and why. */
export function RetryPlan({ runId, retry, revision }: { runId: string; retry: Retry; revision: number | null }) {
  const { data, error } = useQuery(previewQuery(runId, retry, revision));
  if (error) return <p className="text-sm text-danger">{sentence(error)}</p>;
  if (!data) return <p className="text-sm text-muted">Checking what can be reused…</p>;
  const reused = data.nodes.filter((node) => node.expect === "reused");
  const others = data.nodes.filter((node) => node.expect !== "reused");
  return (
    <section aria-label="What will be reused" className="space-y-1 text-sm">
      <p>
        {reused.length === 0 ? "No step can be reused." : `Reuses ${some(reused)}.`}
        {others.length === 0 ? " Nothing runs again." : ` Runs ${plural(others.length, "step")}:`}
      </p>
      <ul className="list-disc space-y-0.5 pl-5">
        {others.slice(0, most).map((node) => (
          <li key={node.id}>
            <strong className="font-medium">{node.name || node.id}</strong>: {node.reason}
            {node.expect === "depends" && <span className="text-muted"> (reused if its files stay the same)</span>}
          </li>
        ))}
        {others.length > most && <li className="text-muted">and {others.length - most} more</li>}
      </ul>
    </section>
  );
}

function some(nodes: Node[]): string {
  const names = nodes.slice(0, most).map((node) => node.name || node.id);
  const rest = nodes.length - names.length;
  return `${plural(nodes.length, "step")} (${names.join(", ")}${rest > 0 ? ` and ${rest} more` : ""})`;
}
