import { useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";
import type { Schemas } from "../api/client.ts";
import { valueAt } from "../definition/model.ts";
import { toast } from "../ui/toast.ts";
import { useCanEdit, useGraph, useSession } from "./context.ts";

declare module "@tanstack/react-router" {
  interface HistoryState {
    /** edit is what the page of a failed run suggested. It is no part of the address, so that no link edits a workflow. */
    edit?: (Schemas["SuggestedEdit"] & { was?: unknown }) | undefined;
  }
}

/**
 * SuggestedEdit makes the edit that the page of a failed run suggested. Undo takes it back. What was changed
 * since that run stays as it is.
 */
export function SuggestedEdit() {
  const edit = useRouterState({ select: (state) => state.location.state.edit });
  const navigate = useNavigate();
  const { document } = useGraph();
  const canEdit = useCanEdit();
  const ready = useSession((state) => state.ready) && canEdit;
  useEffect(() => {
    if (!edit || !ready) return;
    void navigate({ to: ".", search: true, replace: true, state: { edit: undefined } });
    const path = `nodes.${edit.node}.${edit.field}`;
    const is = JSON.stringify(valueAt(document.definition())(path));
    if (is === JSON.stringify(edit.value)) return;
    if (is !== JSON.stringify(edit.was)) {
      toast.error("The step has changed since that run. The suggestion was not applied.");
      return;
    }
    document.apply([{ path, value: edit.value }]);
    toast.ok("Applied the suggestion", { action: { label: "Undo", run: () => document.undo.undo() } });
  }, [edit, ready, document, navigate]);
  return null;
}
