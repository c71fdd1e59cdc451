import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { RotateCcw } from "lucide-react";
import { useState } from "react";
import { ask } from "../api/client.ts";
import { apiOf, useApi } from "../api/team.ts";
import { DiffView } from "../graph/DiffView.tsx";
import { Answer } from "../page/Answer.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { useCanEdit, useEditor, useGraph, useSession } from "./context.ts";

/** HistoryPanel lists the versions that were kept, shows what has changed since, and restores one. */
export function HistoryPanel({ workflowId }: { workflowId: string }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const revisions = useQuery({
    queryKey: ["revisions", workflowId],
    queryFn: ({ client }) =>
      ask(apiOf(client).GET("/api/workflows/{id}/revisions", { params: { path: { id: workflowId } } })),
    staleTime: 0,
  });
  return (
    <Answer query={revisions} rows={4}>
      {(list) => (
        <>
          <ul className="space-y-1">
            {list.map((revision) => (
              <li key={revision.revision}>
                <button
                  type="button"
                  onClick={() => setChosen(revision.revision)}
                  className="w-full rounded-lg border px-3 py-2 text-left text-sm hover:bg-sunken"
                >
                  <span className="flex justify-between gap-2">
                    <span className="font-medium">Version {revision.revision}</span>
                    <span className="text-[13px] text-muted">
                      <Time at={revision.createdAt} />
                    </span>
                  </span>
                  <span className="block text-[13px] text-muted">
                    {revision.createdBy.name}
                    {revision.summary && ` · ${revision.summary}`}
                  </span>
                </button>
              </li>
            ))}
          </ul>
          {chosen !== null && <Revision workflowId={workflowId} number={chosen} onClose={() => setChosen(null)} />}
        </>
      )}
    </Answer>
  );
}

function Revision({ workflowId, number, onClose }: { workflowId: string; number: number; onClose: () => void }) {
  const api = useApi();
  const { session } = useEditor();
  const graph = useGraph();
  const lock = useSession((state) => state.lock);
  const locked = !useCanEdit();
  const client = useQueryClient();
  const path = { id: workflowId, n: number };
  const revision = useQuery({
    queryKey: ["revision", workflowId, number],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/workflows/{id}/revisions/{n}", { params: { path } })),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const restore = useMutation({
    mutationFn: async () => {
      await session.flush();
      await ask(api.POST("/api/workflows/{id}/revisions/{n}/restore", { params: { path } }));
      if (!session.state.getState().live) await session.reload();
    },
    onSuccess: () => {
      toast.ok(`Restored version ${number}. The previous version is in the history.`);
      void client.invalidateQueries({ queryKey: ["revisions", workflowId] });
      onClose();
    },
  });
  return (
    <Dialog
      wide
      open
      onOpenChange={(open) => !open && onClose()}
      title={`Version ${number}`}
      description="What restoring this version changes."
      footer={
        <Button
          look="primary"
          icon={<RotateCcw className="size-4" aria-hidden />}
          busy={restore.isPending}
          disabledReason={locked ? (lock ?? "You have view-only access.") : null}
          onClick={() => restore.mutate()}
        >
          Restore this version
        </Button>
      }
    >
      <Answer query={revision}>
        {({ definition }) => <DiffView before={graph.document.definition()} after={definition} />}
      </Answer>
    </Dialog>
  );
}
