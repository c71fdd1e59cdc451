import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { RotateCcw, StepForward } from "lucide-react";
import { api, ask, once } from "../api/client.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Button } from "../ui/Button.tsx";
import { workflowQuery } from "../workflows/queries.ts";
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

const reused = "Unchanged steps that completed are reused.";

/** RetryButtons go on after a failure: with the workflow as it is now where it has changed since, or as it was. */
export function RetryButtons({ run }: { run: Pick<Run, "id" | "workflowId" | "workflowRevision"> }) {
  const workflow = useQuery({ ...workflowQuery(run.workflowId), staleTime: 0 });
  const whyNot = useWhyNot()("start runs");
  const retry = useRetry(run.id);
  const changed = workflow.data !== undefined && workflow.data.revision > run.workflowRevision;
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
          title={`Runs version ${workflow.data?.revision}, with your changes. ${reused}`}
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
        title={changed ? `Runs version ${run.workflowRevision} again, without the changes since. ${reused}` : reused}
        onClick={() => retry.mutate("same")}
      >
        {changed ? "Retry without changes" : "Retry from failure"}
      </Button>
    </>
  );
}

/** RunFromHere takes a fix in the editor back to the run that failed. */
export function RunFromHere({ runId, flush }: { runId: string; flush: () => Promise<void> }) {
  const whyNot = useWhyNot()("start runs");
  const retry = useRetry(runId);
  return (
    <Button
      size="sm"
      icon={<StepForward className="size-4" aria-hidden />}
      busy={retry.isPending}
      disabledReason={whyNot}
      title={`Continues the failed run with your changes. ${reused}`}
      onClick={async () => {
        await flush();
        retry.mutate("current");
      }}
    >
      Run from here
    </Button>
  );
}
