import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { GitBranch, RefreshCw, Unlink } from "lucide-react";
import { useState } from "react";
import { ask, type Schemas } from "../api/client.ts";
import { apiOf, useApi } from "../api/team.ts";
import { useWhyNot } from "../identity/queries.ts";
import { behindText, commitUrl } from "../runs/page/commit.ts";
import { Button } from "../ui/Button.tsx";
import { ConfirmDialog } from "../ui/Dialog.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { type Workflow, workflowQuery } from "../workflows/queries.ts";

/** FollowsGit says which repository a workflow follows, brings what is new there, and ends it. */
export default function FollowsGit({ workflow, git }: { workflow: Workflow; git: Schemas["FollowedGit"] }) {
  const api = useApi();
  const client = useQueryClient();
  const locked = useWhyNot()("edit workflows");
  const [detaching, setDetaching] = useState(false);
  const params = { path: { id: workflow.id } };
  const { data: status } = useQuery({
    queryKey: ["source", workflow.id],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/workflows/{id}/source", { params })),
    retry: false,
  });
  const fresh = (now: Workflow) => {
    client.setQueryData(workflowQuery(workflow.id).queryKey, now);
    void client.invalidateQueries({ queryKey: ["source", workflow.id] });
    void client.invalidateQueries({ queryKey: ["revisions", workflow.id] });
    void client.invalidateQueries({ queryKey: ["workflows"] });
  };
  const refresh = useMutation({
    mutationFn: () => ask(api.POST("/api/workflows/{id}/refresh", { params })),
    onSuccess: (now) => {
      fresh(now);
      if (now.git?.commit === git.commit) toast.ok("No changes in Git.");
      else toast.ok(`Refreshed to commit ${now.git?.commit.slice(0, 7)}.`);
    },
    onError: () => void client.invalidateQueries({ queryKey: workflowQuery(workflow.id).queryKey }),
  });
  const detach = useMutation({
    mutationFn: () => ask(api.POST("/api/workflows/{id}/detach", { params })),
    onSuccess: (now) => {
      fresh(now);
      toast.ok("Detached. You can edit the workflow here now.");
    },
  });
  const url = commitUrl(git.git, git.commit);
  const short = git.commit.slice(0, 7);
  const behind = behindText(git.commit, status);
  return (
    <section aria-label="Git" className="border-b bg-info-soft px-3 py-1.5 text-[13px] md:px-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5">
        <span className="flex min-w-0 flex-wrap items-center gap-x-1.5">
          <GitBranch className="size-4 shrink-0" aria-hidden />
          <strong className="font-semibold">Follows Git</strong>
          <span className="min-w-0 break-all" title={git.git}>
            {git.ref ?? "default branch"}
            {git.path && <span className="text-muted"> in {git.path}</span>}
          </span>
          <span title={git.commit}>
            at{" "}
            {url ? (
              <a className="font-mono underline" href={url} target="_blank" rel="noreferrer">
                {short}
              </a>
            ) : (
              <span className="font-mono">{short}</span>
            )}
          </span>
          {behind && <span className="font-medium">({behind})</span>}
        </span>
        <span className="ml-auto flex gap-2">
          <Button
            size="sm"
            icon={<RefreshCw className="size-4" aria-hidden />}
            busy={refresh.isPending}
            disabledReason={locked}
            onClick={() => refresh.mutate()}
          >
            Refresh
          </Button>
          <Button
            size="sm"
            icon={<Unlink className="size-4" aria-hidden />}
            disabledReason={locked}
            onClick={() => setDetaching(true)}
          >
            Detach
          </Button>
        </span>
      </div>
      <p className="text-muted">Read-only here. Edit the file in the repository, then refresh.</p>
      {git.problem && (
        <div className="mt-1.5">
          <Notice tone="danger" title="The last refresh failed">
            <p>
              {git.problem} (<Time at={git.refreshedAt} />)
            </p>
          </Notice>
        </div>
      )}
      <ConfirmDialog
        open={detaching}
        onOpenChange={setDetaching}
        title="Detach from Git?"
        action="Detach"
        danger={false}
        busy={detach.isPending}
        onConfirm={() => detach.mutate()}
      >
        The workflow stays as it is at commit {short} and can be edited here. Later pushes no longer change it. To
        follow the repository again, create a new workflow from it.
      </ConfirmDialog>
    </section>
  );
}
