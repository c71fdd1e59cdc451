import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Ban, MessageSquare, Pencil, Play, Share2, WifiOff } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useStore } from "zustand";
import { useApi } from "../../api/team.ts";
import { withConnections } from "../../files/addresses.ts";
import { may } from "../../identity/access.ts";
import { useMe, useMissing, useWhyNot } from "../../identity/queries.ts";
import { active, StatusPill } from "../../page/status.tsx";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { ConfirmDialog } from "../../ui/Dialog.tsx";
import { credits, duration } from "../../ui/format.ts";
import { Progress } from "../../ui/Progress.tsx";
import { Tags } from "../../ui/Tags.tsx";
import { Time, useNow } from "../../ui/Time.tsx";
import { toast } from "../../ui/toast.ts";
import type { Run } from "../queries.ts";
import { cancelRun, isReported, runQuery } from "../queries.ts";
import type { RunStore } from "../runStore.ts";
import { sameTarget } from "../start/outputTo.ts";
import { waitingText } from "../waiting.ts";
import { Commit } from "./Commit.tsx";
import { RetryButtons } from "./Retry.tsx";
import { reusedText } from "./reused.ts";

const LabelDialog = lazy(async () => ({ default: (await import("./LabelDialog.tsx")).LabelDialog }));
const ResultLinks = lazy(async () => ({ default: (await import("../results/ResultLinks.tsx")).ResultLinks }));
const RunDialog = lazy(async () => ({ default: (await import("../start/RunDialog.tsx")).RunDialog }));

/** RunHead shows the status of the run and its actions. */
export function RunHead({ store, away, error }: { store: RunStore; away: boolean; error: string | null }) {
  const run = useStore(store.state, (state) => state.run);
  const step = useStore(store.state, (state) => state.step);
  const going = active(run.status);
  const free = useMissing("billing");
  return (
    <header className="mb-4">
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div className="min-w-0">
          <h1 className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
            <Link to="/workflows/$workflowId" params={{ workflowId: run.workflowId }} className="hover:underline">
              {run.workflowName}
            </Link>
            <span className="tabular text-muted">#{run.number}</span>
            <span role="status" aria-live="polite">
              <StatusPill
                status={run.status}
                {...(run.status === "running" && { suffix: `${Math.floor(run.progressPercent)}%` })}
              />
            </span>
            {away && (
              <span className="flex items-center gap-1 text-[13px] font-normal text-warn">
                <WifiOff className="size-4" aria-hidden /> Reconnecting
              </span>
            )}
          </h1>
          <Label run={run} />
          <p className="mt-1 flex flex-wrap gap-x-4 gap-y-0.5 text-sm text-muted">
            <span>
              {run.startedBy.name}
              {run.startedBy.type !== "user" && ` (${run.startedBy.type})`}, <Time at={run.createdAt} />
            </span>
            <span>version {run.workflowRevision}</span>
            <Commit run={run} />
            {isReported(run) ? <span>reported by {run.engine}</span> : <Size run={run} />}
            <span className="tabular">
              <Took run={run} />
            </span>
            {!isReported(run) && !free && <span className="tabular">{credits(run.creditsUsed)} credits</span>}
            {run.reused && <span className="tabular">{reusedText(store.run.nodes, run.reused)}</span>}
          </p>
        </div>
        <Actions run={{ ...store.run, ...run }} />
      </div>
      {error && <p className="mt-2 text-sm text-danger">{error}</p>}
      {going && (
        <div className="mt-3">
          <Progress label="Progress of the run" value={run.status === "queued" ? null : run.progressPercent} />
          <Activity run={run} step={step} />
        </div>
      )}
    </header>
  );
}

function Size({ run }: { run: Given }) {
  const { vcpu, ramGb, gpu } = run.compute;
  return (
    <span>
      {vcpu} vCPU · {ramGb} GB{gpu > 0 && ` · ${gpu} GPU`}
    </span>
  );
}

/** Label shows the name, note and tags of the run, with a button that changes them. */
function Label({ run }: { run: Given }) {
  const [editing, setEditing] = useState(false);
  const me = useMe();
  const mine = run.startedBy.id === me.id && may(me.team.role, "start runs");
  return (
    <div className="mt-0.5 max-w-3xl text-sm">
      <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
        {run.name && <strong className="font-medium break-words">{run.name}</strong>}
        <Tags tags={run.tags} />
        {run.sweepId && (
          <Link to="/runs/sweeps/$sweepId" params={{ sweepId: run.sweepId }} search={{}} className="underline">
            Part of a sweep
          </Link>
        )}
        {(mine || may(me.team.role, "cancel any run")) && (
          <button
            type="button"
            className="inline-flex items-center gap-1 text-[13px] text-muted hover:underline"
            onClick={() => setEditing(true)}
          >
            <Pencil className="size-3.5" aria-hidden /> {run.name ? "Edit name and tags" : "Add a name or tags"}
          </button>
        )}
      </p>
      {run.note && <p className="mt-1 whitespace-pre-wrap break-words text-muted">{run.note}</p>}
      {editing && (
        <Suspense fallback={null}>
          <LabelDialog run={run} onClose={() => setEditing(false)} />
        </Suspense>
      )}
    </div>
  );
}

/** Activity shows the current step of a run, or why the run waits. */
function Activity({ run, step }: { run: Given; step: string | null }) {
  const why = run.cancelRequested ? null : waitingText(run);
  if (why) {
    return (
      <p role="status" className="mt-1 text-sm">
        {why}
      </p>
    );
  }
  return <p className="mt-1 h-5 truncate text-[13px] text-muted">{run.cancelRequested ? "Cancelling…" : step}</p>;
}

function Took({ run }: { run: Pick<Run, "status" | "startedAt" | "durationMs"> }) {
  if (run.status === "running" && run.startedAt) return <Ticking since={run.startedAt} />;
  return <>{run.durationMs === null ? "not started" : duration(run.durationMs)}</>;
}

function Ticking({ since }: { since: string }) {
  return <>{duration(useNow() - Date.parse(since))}</>;
}

type Given = Omit<Run, "nodes" | "logs">;

function Actions({ run }: { run: Given }) {
  const [again, setAgain] = useState(false);
  const [sharing, setSharing] = useState(false);
  const whyNot = useWhyNot();
  const noChat = useMissing("chat");
  return (
    <div className="flex flex-wrap items-center gap-2">
      {active(run.status) ? (
        <CancelButton run={run} />
      ) : (
        run.status === "cancelled" && !isReported(run) && <RetryButtons run={run} />
      )}
      {!active(run.status) && !isReported(run) && (
        <Button
          size="sm"
          icon={<Share2 className="size-4" aria-hidden />}
          disabledReason={whyNot("manage sharing")}
          onClick={() => setSharing(true)}
        >
          Share results…
        </Button>
      )}
      {sharing && (
        <Suspense fallback={null}>
          <ResultLinks run={run} onClose={() => setSharing(false)} />
        </Suspense>
      )}
      {!noChat && (
        <Link to="/chat" search={{ run: run.id }} className={buttonClass("secondary", "sm")}>
          <MessageSquare className="size-4" aria-hidden /> Ask about this run
        </Link>
      )}
      {!isReported(run) && (
        <Button
          size="sm"
          look={run.status === "completed" ? "primary" : "secondary"}
          icon={<Play className="size-4" aria-hidden />}
          disabledReason={whyNot("start runs")}
          onClick={() => setAgain(true)}
        >
          Run again…
        </Button>
      )}
      {again && (
        <Suspense fallback={null}>
          <RunDialog
            workflowId={run.workflowId}
            open
            onOpenChange={setAgain}
            parameters={run.parameters}
            inputs={withConnections(run)}
            compute={run.compute}
            outputTo={sameTarget(run)}
          />
        </Suspense>
      )}
    </div>
  );
}

function CancelButton({ run }: { run: Given }) {
  const free = useMissing("billing");
  const api = useApi();
  const [asking, setAsking] = useState(false);
  const me = useMe();
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => cancelRun(api, run.id),
    onSuccess: () => toast.ok(isReported(run) ? "Marked as cancelled" : "Cancelling: stopping tasks"),
    onSettled: () => {
      setAsking(false);
      void client.invalidateQueries({ queryKey: runQuery(run.id).queryKey });
    },
  });
  const mine = run.startedBy.id === me.id && may(me.team.role, "start runs");
  const refusal = mine || may(me.team.role, "cancel any run") ? null : "Members can cancel only their own runs.";
  return (
    <>
      <Button
        size="sm"
        look="danger-quiet"
        icon={<Ban className="size-4" aria-hidden />}
        busy={run.cancelRequested}
        disabledReason={refusal}
        onClick={() => setAsking(true)}
      >
        {run.cancelRequested ? "Cancelling…" : "Cancel"}
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title="Cancel this run?"
        action="Cancel run"
        dismiss="Keep running"
        busy={cancel.isPending}
        onConfirm={() => cancel.mutate()}
      >
        <p>
          {isReported(run)
            ? `The run is marked as cancelled, and what ${run.engine} reports from now on is dropped. The pipeline itself goes on where it runs: stop it there.`
            : "Running tasks are stopped. Outputs stored so far are kept."}{" "}
          {!isReported(run) && !free && "Credits used so far are charged."}
        </p>
      </ConfirmDialog>
    </>
  );
}
