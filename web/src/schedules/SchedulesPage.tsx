import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { CalendarClock, Plus } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useMe, useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Page, Section } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { ConfirmDialog } from "../ui/Dialog.tsx";
import { Empty } from "../ui/Empty.tsx";
import { plural } from "../ui/format.ts";
import { Notice, type Tone } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { workflowQuery } from "../workflows/queries.ts";
import {
  changeSchedule,
  confirmRevision,
  deleteSchedule,
  revisionsQuery,
  type Schedule,
  schedulesQuery,
} from "./queries.ts";
import { ScheduleDialog } from "./ScheduleDialog.tsx";
import { Triggers } from "./Triggers.tsx";
import { onClock, presets } from "./times.ts";

/** SchedulesPage is what starts runs of a workflow by itself. */
export function SchedulesPage() {
  const { workflowId } = useParams({ from: "/inside/workflows/$workflowId/schedules" });
  const workflow = useQuery(workflowQuery(workflowId));
  const schedules = useQuery(schedulesQuery(workflowId));
  const whyNot = useWhyNot()("start runs");
  const [making, setMaking] = useState(false);
  const add = (
    <Button
      look="primary"
      icon={<Plus className="size-4" aria-hidden />}
      disabledReason={whyNot}
      onClick={() => setMaking(true)}
    >
      New schedule
    </Button>
  );
  const name = workflow.data?.name ?? "Workflow";
  return (
    <Page
      title={`Schedules of ${name}`}
      intro={
        <>
          Runs of{" "}
          <Link to="/workflows/$workflowId" params={{ workflowId }} search={{}} className="underline">
            {name}
          </Link>{" "}
          that start on a schedule or by a trigger, as the person who created them.
        </>
      }
      actions={schedules.data?.length ? add : null}
    >
      <Unconfirmed workflowId={workflowId} />
      <Section title="Schedules">
        <Answer query={schedules} id={workflowId} rows={3}>
          {(list) =>
            list.length === 0 ? (
              <Empty icon={<CalendarClock aria-hidden />} title="No schedules yet" actions={add}>
                Start a run every night, every Monday, or at the times of any cron expression.
              </Empty>
            ) : (
              <ul className="space-y-3">
                {list.map((schedule) => (
                  <ScheduleCard key={schedule.id} schedule={schedule} />
                ))}
              </ul>
            )
          }
        </Answer>
      </Section>
      <Triggers workflowId={workflowId} />
      {making && workflow.data && <ScheduleDialog workflow={workflow.data} onClose={() => setMaking(false)} />}
    </Page>
  );
}

/** Unconfirmed asks members to stand behind what guests drew. */
function Unconfirmed({ workflowId }: { workflowId: string }) {
  const api = useApi();
  const revisions = useQuery(revisionsQuery(workflowId));
  const whyNot = useWhyNot()("edit workflows");
  const client = useQueryClient();
  const confirm = useMutation({
    mutationFn: (n: number) => confirmRevision(api, workflowId, n),
    onSuccess: (revision) => toast.ok(`Confirmed version ${revision.revision}`),
    onSettled: () => client.invalidateQueries({ queryKey: revisionsQuery(workflowId).queryKey }),
  });
  const [newest] = revisions.data ?? [];
  if (!newest || newest.confirmed) return null;
  const runs = revisions.data?.find((revision) => revision.confirmed);
  return (
    <Notice tone="warn" title="Guests have edited this workflow">
      <p>
        Schedules and triggers run {runs ? `version ${runs.revision}` : "an earlier version"} until a member confirms
        version {newest.revision}. Review it in the editor first.
      </p>
      <div className="mt-2">
        <Button
          size="sm"
          busy={confirm.isPending}
          disabledReason={whyNot}
          onClick={() => confirm.mutate(newest.revision)}
        >
          Confirm version {newest.revision}
        </Button>
      </div>
    </Notice>
  );
}

const tones: Record<Schedule["firings"][number]["outcome"], Tone> = {
  started: "ok",
  waiting: "info",
  skipped: "neutral",
  missed: "warn",
  refused: "danger",
};

function ScheduleCard({ schedule }: { schedule: Schedule }) {
  const api = useApi();
  const me = useMe();
  const may = useWhyNot();
  const whyNot =
    schedule.createdBy.id === me.id
      ? may("start runs")
      : may("cancel any run") && "Only admins and owners can change someone else's schedule.";
  const client = useQueryClient();
  const [deleting, setDeleting] = useState(false);
  const refresh = () => client.invalidateQueries({ queryKey: schedulesQuery(schedule.workflowId).queryKey });
  const change = useMutation({
    mutationFn: () => changeSchedule(api, schedule, { enabled: !schedule.enabled }),
    onSettled: refresh,
  });
  const end = useMutation({
    mutationFn: () => deleteSchedule(api, schedule),
    onSuccess: () => toast.ok("Schedule deleted"),
    onSettled: refresh,
  });
  return (
    <li className="rounded-lg border bg-surface p-4">
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div className="min-w-0">
          <p className="flex flex-wrap items-center gap-2">
            <span className="font-medium">{presets[schedule.cron] ?? <code>{schedule.cron}</code>}</span>
            <Pill tone={schedule.enabled ? "ok" : "neutral"}>{schedule.enabled ? "on" : "paused"}</Pill>
          </p>
          <p className="mt-1 text-sm text-muted">
            {schedule.timeZone}, by {schedule.createdBy.name}
            {schedule.overlap === "queue" && ", waits for the previous run"}
            {schedule.catchUp && ", catches up after downtime"}
          </p>
        </div>
        <div className="flex gap-2">
          <Button size="sm" busy={change.isPending} disabledReason={whyNot} onClick={() => change.mutate()}>
            {schedule.enabled ? "Pause" : "Resume"}
          </Button>
          <Button size="sm" look="danger-quiet" disabledReason={whyNot} onClick={() => setDeleting(true)}>
            Delete
          </Button>
        </div>
      </div>
      {schedule.paused && (
        <Notice tone="warn" title="Paused">
          {schedule.paused.message} (<Time at={schedule.paused.at} />)
        </Notice>
      )}
      <div className="mt-3 grid gap-4 sm:grid-cols-2">
        {schedule.nextTimes.length > 0 && (
          <div>
            <h3 className="mb-1 text-[13px] font-medium text-muted">Next runs</h3>
            <ol className="space-y-0.5 text-sm">
              {schedule.nextTimes.map((at) => (
                <li key={at}>
                  <time dateTime={at}>{onClock(at, schedule.timeZone)}</time>
                </li>
              ))}
            </ol>
          </div>
        )}
        {schedule.firings.length > 0 && (
          <div>
            <h3 className="mb-1 text-[13px] font-medium text-muted">Previous runs</h3>
            <ul className="space-y-0.5 text-sm">
              {schedule.firings.slice(0, 5).map((firing) => (
                <li key={firing.dueAt} className="flex flex-wrap items-center gap-x-2">
                  <Pill tone={tones[firing.outcome]}>{firing.outcome}</Pill>
                  {firing.runId ? (
                    <Link to="/runs/$runId" params={{ runId: firing.runId }} search={{}} className="underline">
                      {onClock(firing.dueAt, schedule.timeZone)}
                    </Link>
                  ) : (
                    <span title={firing.message ?? undefined}>{onClock(firing.dueAt, schedule.timeZone)}</span>
                  )}
                  {firing.times > 1 && <span className="text-muted">{plural(firing.times, "time")}</span>}
                </li>
              ))}
            </ul>
          </div>
        )}
      </div>
      <ConfirmDialog
        open={deleting}
        onOpenChange={setDeleting}
        title="Delete this schedule?"
        action="Delete schedule"
        onConfirm={() => {
          end.mutate();
          setDeleting(false);
        }}
      >
        It won't start any more runs. Runs it already started continue.
      </ConfirmDialog>
    </li>
  );
}
