import { Link } from "@tanstack/react-router";
import { Eye, PencilLine } from "lucide-react";
import { useWhyNot } from "../../identity/queries.ts";
import { buttonClass } from "../../ui/Button.tsx";
import type { Run } from "../queries.ts";

interface StepLinkProps {
  run: Pick<Run, "id" | "workflowId">;
  node: string;
  /** Whether the editor offers to continue the run from there. */
  continues: boolean;
  look?: "primary" | "secondary";
}

/** StepLink opens a step in the editor, for those who may not edit it, too. */
export function StepLink({ run, node, continues, look = "secondary" }: StepLinkProps) {
  const viewOnly = useWhyNot()("edit workflows") !== null;
  const Icon = viewOnly ? Eye : PencilLine;
  return (
    <Link
      to="/workflows/$workflowId"
      params={{ workflowId: run.workflowId }}
      search={{ node, panel: "step", ...(continues && { from: run.id }) }}
      className={buttonClass(look, "sm")}
    >
      <Icon className="size-4" aria-hidden /> {viewOnly ? "View step" : "Edit step"}
    </Link>
  );
}
