import { useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";
import { Copy } from "../../ui/Copy.tsx";
import { duration } from "../../ui/format.ts";
import type { RunNode } from "../queries.ts";
import { type Attempt, placeText } from "./items.ts";

/** Placement shows the machine of an attempt, its time in the queue, and the command that shows its cluster job. */
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

/** NodePlacement is the Placement of the newest attempt of a step without items. */
export function NodePlacement({ run, node }: { run: string; node: RunNode }) {
  const shards = useQuery({
    queryKey: ["placement", run, node.id, node.attempt, node.status],
    queryFn: ({ client }) =>
      ask(
        apiOf(client).GET("/api/runs/{id}/nodes/{nodeId}/shards", {
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
