import { useNavigate, useSearch } from "@tanstack/react-router";
import { useTitle } from "../app/Page.tsx";
import { RunDialog } from "./RunDialog.tsx";

/** LaunchPage opens the run dialog with what its address brings. */
export function LaunchPage() {
  const search = useSearch({ from: "/inside/launch" });
  const navigate = useNavigate();
  useTitle("Launch");
  return (
    <RunDialog
      workflowId={search.workflow ?? ""}
      open
      onOpenChange={(open) => !open && void navigate({ to: "/workflows", search: {} })}
    />
  );
}
