import { useQuery } from "@tanstack/react-query";
import { api, ask } from "../api/client.ts";
import { Copy } from "../ui/Copy.tsx";
import { duration } from "../ui/format.ts";
import { type Attempt, placeText } from "./items.ts";
import type { RunNode } from "./runStore.ts";

/** Placement is where an attempt ran, how long it waited, and how to look at its job on the cluster. */
export function Placement({ attempt }: { attempt: Attempt }) {
  const text = placeText(attempt, duration);
  if (!text) return null;
  return (
    <div className="text-[13px] text-muted">
      <p>{text}</p>
      {attempt.job && (
        <p className="flex items-center gap-1">
          <code className="min-w-0 break-all text-xs">{attempt.job.command}</code>
          <Copy text={attempt.job.command} />
        </p>
      )}
    </div>
  );
}

/** NodePlacement is that of the newest attempt of a step that is not scattered. */
export function NodePlacement({ run, node }: { run: string; node: RunNode }) {
  const shards = useQuery({
    queryKey: ["placement", run, node.id, node.attempt, node.status],
    queryFn: () =>
      ask(
        api.GET("/api/runs/{id}/nodes/{nodeId}/shards", {
          params: { path: { id: run, nodeId: node.id }, query: { limit: 1 } },
        }),
      ),
  });
  const newest = shards.data?.[0]?.attempts.at(-1);
  return newest ? (
    <div className="mt-3">
      <Placement attempt={newest} />
    </div>
  ) : null;
}
