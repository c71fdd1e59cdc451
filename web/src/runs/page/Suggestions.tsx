import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Lightbulb, PencilLine, Sparkles } from "lucide-react";
import { ask, type Schemas } from "../../api/client.ts";
import { useApi } from "../../api/team.ts";
import { valueAt } from "../../definition/model.ts";
import { LineDiff } from "../../graph/LineDiff.tsx";
import { useMissing, useWhyNot } from "../../identity/queries.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { toast } from "../../ui/toast.ts";
import type { Run } from "../queries.ts";

type FailedRun = Pick<Run, "id" | "workflowId" | "definition" | "failure">;
type Edit = Schemas["SuggestedEdit"];

const pathOf = (edit: Edit) => `nodes.${edit.node}.${edit.field}`;

/** Suggestions say what may help a failed run. One click opens the editor with the edit made. */
export function Suggestions({ run }: { run: FailedRun }) {
  const mayEdit = useWhyNot()("edit workflows") === null;
  const noModel = useMissing("chat");
  const list = run.failure?.suggestions ?? [];
  return (
    <>
      {list.length > 0 && (
        <ul aria-label="What may help" className="mt-3 space-y-2">
          {list.map(({ code, message, edit }) => (
            <li key={code} className="flex flex-wrap items-center gap-2 text-sm">
              <Lightbulb className="size-4 shrink-0 text-warn" aria-hidden />
              <span className="min-w-0 flex-1 basis-60 break-words">{message}</span>
              {edit && mayEdit && <ApplyLink run={run} edit={edit} />}
            </li>
          ))}
        </ul>
      )}
      {run.failure && mayEdit && !noModel && <Explain run={run} />}
    </>
  );
}

function ApplyLink({ run, edit }: { run: FailedRun; edit: Edit }) {
  return (
    <Link
      to="/workflows/$workflowId"
      params={{ workflowId: run.workflowId }}
      search={{ node: edit.node, panel: "step", from: run.id }}
      state={{ edit: { ...edit, was: valueAt(run.definition)(pathOf(edit)) } }}
      className={buttonClass("secondary", "sm")}
    >
      <PencilLine className="size-4" aria-hidden /> Apply in the editor
    </Link>
  );
}

/** Explain has the model say why the run failed. Nothing is sent before somebody asks. */
function Explain({ run }: { run: FailedRun }) {
  const api = useApi();
  const asked = useMutation({
    mutationFn: () => ask(api.POST("/api/runs/{id}/explain", { params: { path: { id: run.id } } })),
    onError: (error) => toast.error(error.message),
  });
  if (!asked.data) {
    return (
      <p className="mt-3 flex flex-wrap items-center gap-2 text-sm">
        <Button
          size="sm"
          icon={<Sparkles className="size-4" aria-hidden />}
          busy={asked.isPending}
          onClick={() => asked.mutate()}
        >
          Explain
        </Button>
        <span className="text-muted">Sends the step and the last lines of its log to the server's model.</span>
      </p>
    );
  }
  const { text, edit } = asked.data;
  return (
    <section aria-label="Explanation" className="mt-3 rounded-lg border bg-surface p-3 text-sm">
      <p className="whitespace-pre-wrap break-words">{text}</p>
      {edit && (
        <>
          <Difference before={valueAt(run.definition)(pathOf(edit))} edit={edit} />
          <ApplyLink run={run} edit={edit} />
        </>
      )}
      <p className="mt-2 text-xs text-muted">Written by a model. Check it before you rely on it.</p>
    </section>
  );
}

function Difference({ before, edit }: { before: unknown; edit: Edit }) {
  return (
    <figure className="my-3">
      <figcaption className="mb-1 text-xs text-muted">
        Proposed edit of <code>{edit.field}</code>
      </figcaption>
      <pre tabIndex={0} className="overflow-auto rounded-lg border py-1.5 text-xs leading-relaxed">
        <LineDiff before={shown(before)} after={shown(edit.value)} around={1} />
      </pre>
    </figure>
  );
}

const shown = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value, null, 2);
