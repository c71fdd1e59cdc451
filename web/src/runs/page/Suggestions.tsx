import { Link } from "@tanstack/react-router";
import { Lightbulb, PencilLine } from "lucide-react";
import { valueAt } from "../../definition/model.ts";
import { useWhyNot } from "../../identity/queries.ts";
import { buttonClass } from "../../ui/Button.tsx";
import type { Run } from "../queries.ts";

/** Suggestions say what may help a failed run. One click opens the editor with the edit made. */
export function Suggestions({ run }: { run: Pick<Run, "id" | "workflowId" | "definition" | "failure"> }) {
  const viewOnly = useWhyNot()("edit workflows") !== null;
  const list = run.failure?.suggestions ?? [];
  if (list.length === 0) return null;
  return (
    <ul aria-label="What may help" className="mt-3 space-y-2">
      {list.map(({ code, message, edit }) => (
        <li key={code} className="flex flex-wrap items-center gap-2 text-sm">
          <Lightbulb className="size-4 shrink-0 text-warn" aria-hidden />
          <span className="min-w-0 flex-1 basis-60 break-words">{message}</span>
          {edit && !viewOnly && (
            <Link
              to="/workflows/$workflowId"
              params={{ workflowId: run.workflowId }}
              search={{ node: edit.node, panel: "step", from: run.id }}
              state={{ edit: { ...edit, was: valueAt(run.definition)(`nodes.${edit.node}.${edit.field}`) } }}
              className={buttonClass("secondary", "sm")}
            >
              <PencilLine className="size-4" aria-hidden /> Apply in the editor
            </Link>
          )}
        </li>
      ))}
    </ul>
  );
}
