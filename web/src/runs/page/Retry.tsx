import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { RotateCcw, StepForward } from "lucide-react";
import { useState } from "react";
import { ask, once, type Schemas } from "../../api/client.ts";
import { useApi } from "../../api/team.ts";
import { useWhyNot } from "../../identity/queries.ts";
import { useGo } from "../../page/useGo.ts";
import { Button } from "../../ui/Button.tsx";
import { ConfirmDialog } from "../../ui/Dialog.tsx";
import { workflowQuery } from "../../workflows/queries.ts";
import type { Run } from "../queries.ts";
import { isReported } from "../queries.ts";
import { previewQuery, RetryPlan, retryLabel } from "./RetryPlan.tsx";

/** useRetry retries a run with its own or the current definition, and opens the new run. */
function useRetry(runId: string) {
  const api = useApi();
  const go = useGo();
  const client = useQueryClient();
  return useMutation({
    mutationFn: (definition: "same" | "current") =>
      ask(api.POST("/api/runs/{id}/retry", { params: { path: { id: runId }, header: once() }, body: { definition } })),
    onSuccess: (started) => {
      void client.invalidateQueries({ queryKey: ["runs"] });
      void go({ to: "/runs/$runId", params: { runId: started.runId }, search: {} });
    },
  });
}

type Given = Pick<Run, "id" | "status" | "workflowId" | "workflowRevision" | "kind">;

/**
 * RetryButtons retries a failed run with its own definition, or with the current one where that has changed. A
 * reported run cannot be retried here.
 */
export function RetryButtons({ run }: { run: Given }) {
  return isReported(run) ? null : <Buttons run={run} />;
}

function Buttons({ run }: { run: Given }) {
  const workflow = useQuery({ ...workflowQuery(run.workflowId), staleTime: 0 });
  const whyNot = useWhyNot()("start runs");
  const retry = useRetry(run.id);
  const revision = workflow.data?.revision ?? null;
  const changed = revision !== null && revision > run.workflowRevision;
  const plan: Schemas["RetryRun"] = { definition: changed ? "current" : "same" };
  const planned = changed ? revision : run.workflowRevision;
  const preview = useQuery({ ...previewQuery(run.id, plan, planned), enabled: !whyNot && !workflow.isPending });
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
        {changed
          ? "Retry without changes"
          : (retryLabel(preview.data?.nodes ?? []) ?? (run.status === "cancelled" ? "Retry" : "Retry from failure"))}
      </Button>
      {!whyNot && !workflow.isPending && (
        <div className="order-last basis-full">
          <RetryPlan runId={run.id} retry={plan} revision={planned} />
        </div>
      )}
    </>
  );
}

/** RunFromHere retries a failed run with the edited definition, after a preview of what runs again. */
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
