import { PanelRight, Plus, Redo2, Search, Undo2, Wand2 } from "lucide-react";
import { useSyncExternalStore } from "react";
import type { UndoManager } from "yjs";
import { Button, IconButton } from "../ui/Button.tsx";
import { useEditor, useGraph } from "./context.ts";

const icon = "size-4.5";

/** Toolbar is what can be done on the canvas; on a small screen, where nothing is edited, what can be looked for. */
export function Toolbar(props: {
  canEdit: boolean;
  onAdd: () => void;
  onFind: () => void;
  onPanel: () => void;
  open: boolean;
}) {
  const { canEdit, onAdd, onFind, onPanel, open } = props;
  const { lock } = useEditor();
  return (
    <div
      role="toolbar"
      aria-label="Canvas"
      className="absolute top-3 left-3 z-10 flex items-center gap-0.5 rounded-lg border bg-surface p-0.5 shadow-lift"
    >
      {lock === null && <Edits canEdit={canEdit} onAdd={onAdd} />}
      <IconButton
        size="sm"
        label="Find a step (Ctrl F)"
        icon={<Search className={icon} aria-hidden />}
        onClick={onFind}
      />
      <IconButton
        size="sm"
        label={open ? "Hide details" : "Show details"}
        aria-pressed={open}
        icon={<PanelRight className={icon} aria-hidden />}
        onClick={onPanel}
      />
    </div>
  );
}

function Edits({ canEdit, onAdd }: { canEdit: boolean; onAdd: () => void }) {
  const graph = useGraph();
  const { undo } = graph.document;
  const steps = useSteps(undo);
  const why = canEdit ? null : "You have view-only access.";
  return (
    <>
      <Button size="sm" look="quiet" icon={<Plus className={icon} aria-hidden />} disabledReason={why} onClick={onAdd}>
        Add a step
      </Button>
      <IconButton
        size="sm"
        label="Undo your last edit (Ctrl Z)"
        icon={<Undo2 className={icon} aria-hidden />}
        disabledReason={why ?? (steps.undo ? null : "Nothing to undo")}
        onClick={() => undo.undo()}
      />
      <IconButton
        size="sm"
        label="Redo (Ctrl Shift Z)"
        icon={<Redo2 className={icon} aria-hidden />}
        disabledReason={why ?? (steps.redo ? null : "Nothing to redo")}
        onClick={() => undo.redo()}
      />
      <IconButton
        size="sm"
        label="Tidy up"
        icon={<Wand2 className={icon} aria-hidden />}
        disabledReason={why}
        onClick={() => {
          const { nodes } = graph.selected();
          graph.document.tidy(nodes.length > 1 ? nodes : undefined);
        }}
      />
    </>
  );
}

const moves = ["stack-item-added", "stack-item-popped", "stack-cleared"] as const;

/** useSteps is whether there is something to undo, and to redo. */
function useSteps(undo: UndoManager): { undo: boolean; redo: boolean } {
  const subscribe = (changed: () => void) => {
    for (const move of moves) undo.on(move, changed);
    return () => {
      for (const move of moves) undo.off(move, changed);
    };
  };
  return {
    undo: useSyncExternalStore(subscribe, () => undo.canUndo()),
    redo: useSyncExternalStore(subscribe, () => undo.canRedo()),
  };
}
