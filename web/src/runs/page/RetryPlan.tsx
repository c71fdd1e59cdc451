import { queryOptions, useQuery } from "@tanstack/react-query";
import { ask, type Schemas } from "../../api/client.ts";
import { sentence } from "../../api/failure.ts";
import { apiOf } from "../../api/team.ts";
import { count, plural } from "../../ui/format.ts";

type Retry = Schemas["RetryRun"];
type Node = Schemas["RetryPreviewNode"];

export const previewQuery = (runId: string, retry: Retry, revision: number | null) =>
  queryOptions({
    queryKey: ["retry-preview", runId, retry, revision],
    queryFn: ({ client }) =>
      ask(apiOf(client).POST("/api/runs/{id}/retry/preview", { params: { path: { id: runId } }, body: retry })),
  });

const most = 6;

/** RetryPlan says, before a retry is started, which steps it reuses, which it runs, and why. */
export function RetryPlan({ runId, retry, revision }: { runId: string; retry: Retry; revision: number | null }) {
  const { data, error } = useQuery(previewQuery(runId, retry, revision));
  if (error) return <p className="text-sm text-danger">{sentence(error)}</p>;
  if (!data) return <p className="text-sm text-muted">Checking what can be reused…</p>;
  const reused = data.nodes.filter((node) => node.expect === "reused");
  const items = data.nodes.reduce((sum, node) => sum + (node.expect === "reused" ? 0 : (node.items?.reused ?? 0)), 0);
  const others = data.nodes.filter((node) => node.expect !== "reused");
  return (
    <section aria-label="What will be reused" className="space-y-1 text-sm">
      <p>
        {reusedText(reused, items)}
        {others.length === 0 ? "Nothing runs again." : `Runs ${plural(others.length, "step")}:`}
      </p>
      <ul className="list-disc space-y-0.5 pl-5">
        {others.slice(0, most).map((node) => (
          <li key={node.id}>
            <strong className="font-medium">{node.name || node.id}</strong>: {node.reason}
            {node.items && `. Runs ${plural(node.items.run, "item")}, reuses ${count(node.items.reused)}`}
            {node.expect === "depends" && <span className="text-muted"> (reused if its files stay the same)</span>}
          </li>
        ))}
        {others.length > most && <li className="text-muted">and {others.length - most} more</li>}
      </ul>
    </section>
  );
}

function reusedText(nodes: Node[], items: number): string {
  const parts = [...(nodes.length > 0 ? [some(nodes)] : []), ...(items > 0 ? [plural(items, "item")] : [])];
  return parts.length === 0 ? "" : `Reuses ${parts.join(" and ")}. `;
}

/** retryLabel names a retry that runs only some items of one scatter by their number; null for any other. */
export function retryLabel(nodes: readonly Node[]): string | null {
  const some = nodes.filter((node) => node.expect !== "reused" && node.items && node.items.reused > 0);
  const items = some[0]?.items;
  if (!items || some.length > 1) return null;
  const what = items.failed === items.run ? `${count(items.run)} failed` : plural(items.run, "item");
  return `Retry ${what} (reuses ${count(items.reused)})`;
}

function some(nodes: Node[]): string {
  const names = nodes.slice(0, most).map((node) => node.name || node.id);
  const rest = nodes.length - names.length;
  return `${plural(nodes.length, "step")} (${names.join(", ")}${rest > 0 ? ` and ${rest} more` : ""})`;
}
