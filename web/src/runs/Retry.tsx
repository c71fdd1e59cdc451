import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { RotateCcw, StepForward } from "lucide-react";
import { useState } from "react";
import { api, ask, once } from "../api/client.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Button } from "../ui/Button.tsx";
import { ConfirmDialog } from "../ui/Dialog.tsx";
import { workflowQuery } from "../workflows/queries.ts";
import { elsewhere } from "./processes.ts";
import { RetryPlan } from "./RetryPlan.tsx";
import type { Run } from "./runStore.ts";

/** useRetry starts a run again, and goes to it: as it was, or the workflow as it is now. */
function useRetry(runId: string) {
  const navigate = useNavigate();
  const client = useQueryClient();
  return useMutation({
    mutationFn: (definition: "same" | "current") =>
      ask(api.POST("/api/runs/{id}/retry", { params: { path: { id: runId }, header: once() }, body: { definition } })),
    onSuccess: (started) => {
      void client.invalidateQueries({ queryKey: ["runs"] });
      void navigate({ to: "/runs/$runId", params: { runId: started.runId }, search: {} });
    },
  });
}

type Given = Pick<Run, "id" | "workflowId" | "workflowRevision" | "kind">;

/**
 * RetryButtons go on after a failure: with the workflow as it is now where it has changed since, or as it was. What
 * another engine carries out, it alone can do again.
 */
export function RetryButtons({ run }: { run: Given }) {
  return elsewhere(run) ? null : <Buttons run={run} />;
}

function Buttons({ run }: { run: Given }) {
  const workflow = useQuery({ ...workflowQuery(run.workflowId), staleTime: 0 });
  const whyNot = useWhyNot()("start runs");
  const retry = useRetry(run.id);
  const revision = workflow.data?.revision ?? null;
  const changed = revision !== null && revision > run.workflowRevision;
  const busy = (definition: "same" | "current") => retry.isPending && retry.variables === definition;
  return (
    <>
      {changed && (
        <Button
          size="sm"
          look="primary"
          icon={<StepForward className="size-4" aria-hidden />}
          busy={busy("current")}
          disabledReason={whyNot}
          title={`Runs version ${revision}, with your changes.`}
          onClick={() => retry.mutate("current")}
        >
          Run from here
        </Button>
      )}
      <Button
        size="sm"
        icon={<RotateCcw className="size-4" aria-hidden />}
        busy={busy("same")}
        disabledReason={whyNot}
        {...(changed && { title: `Runs version ${run.workflowRevision} again, without the changes since.` })}
        onClick={() => retry.mutate("same")}
      >
        {changed ? "Retry without changes" : "Retry from failure"}
      </Button>
      {!whyNot && !workflow.isPending && (
        <div className="order-last basis-full">
          <RetryPlan
            runId={run.id}
            retry={{ definition: changed ? "current" : "same" }}
            revision={changed ? revision : run.workflowRevision}
          />
        </div>
      )}
    </>
  );
}

/** RunFromHere takes a fix in the editor back to the run that failed, and says first what that computes. */
export function RunFromHere({ runId, flush }: { runId: string; flush: () => Promise<void> }) {
  const whyNot = useWhyNot()("start runs");
  const retry = useRetry(runId);
  const [asked, setAsked] = useState(0);
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button
        size="sm"
        icon={<StepForward className="size-4" aria-hidden />}
        disabledReason={whyNot}
        title="Continues the failed run with your changes."
        onClick={async () => {
          await flush();
          setAsked(asked + 1);
          setOpen(true);
        }}
      >
        Run from here
      </Button>
      <ConfirmDialog
        open={open}
        onOpenChange={setOpen}
        title="Run from here?"
        action="Run"
        danger={false}
        busy={retry.isPending}
        onConfirm={() => retry.mutate("current")}
      >
        <RetryPlan runId={runId} retry={{ definition: "current" }} revision={-asked} />
      </ConfirmDialog>
    </>
  );
}
