import { Ellipsis } from "lucide-react";
import { useSyncExternalStore } from "react";
import { Button, IconButton } from "../ui/Button.tsx";
import { Menu, MenuItem } from "../ui/Menu.tsx";
import { type Action, type ActionName, actions as table, whyNot } from "./actions/actions.ts";
import { shown } from "./actions/keys.ts";
import { useCanEdit, useGraph, useSession, useShown, useWorkspace } from "./context.ts";

const icon = "size-4.5";

/** Toolbar offers what is done most on the canvas, and a menu with the rest. Where nothing can be edited it only shows. */
export function Toolbar({ panel }: { panel: boolean }) {
  const locked = useSession((state) => state.lock) !== null;
  useChanges();
  return (
    <div
      role="toolbar"
      aria-label="Canvas"
      className="absolute top-3 left-3 z-10 flex items-center gap-0.5 rounded-lg border bg-surface p-0.5 shadow-lift"
    >
      {!locked && (
        <>
          <AddButton />
          <ActionButton name="undo" />
          <ActionButton name="redo" />
          <ActionButton name="tidy" />
        </>
      )}
      <ActionButton name="find" />
      <ActionButton name="panel" label={panel ? "Hide details" : "Show details"} pressed={panel} />
      <Menu
        align="start"
        trigger={<IconButton size="sm" label="More actions" icon={<Ellipsis className={icon} aria-hidden />} />}
      >
        {(locked ? viewing : editing).map((name) => (
          <ActionItem key={name} name={name} />
        ))}
      </Menu>
    </div>
  );
}

const viewing: ActionName[] = ["selectAll", "copy", "fit", "fitSelection", "shortcuts"];
const editing: ActionName[] = [
  "selectAll",
  "copy",
  "cut",
  "paste",
  "duplicate",
  "remove",
  "fit",
  "fitSelection",
  "shortcuts",
];

function AddButton() {
  const { actions } = useWorkspace();
  const { label, icon: Icon } = table.palette;
  return (
    <Button
      size="sm"
      look="quiet"
      icon={<Icon className={icon} aria-hidden />}
      disabledReason={whyNot("palette", actions.target())}
      onClick={() => actions.run("palette")}
    >
      {label}
    </Button>
  );
}

function ActionButton({ name, label, pressed }: { name: ActionName; label?: string; pressed?: boolean }) {
  const { actions } = useWorkspace();
  const { icon: Icon, shortcuts, ...action }: Action = table[name];
  const keys = shortcuts[0] ? ` (${shown(shortcuts[0])})` : "";
  return (
    <IconButton
      size="sm"
      label={`${label ?? action.label}${keys}`}
      icon={<Icon className={icon} aria-hidden />}
      disabledReason={whyNot(name, actions.target())}
      {...(pressed !== undefined && { "aria-pressed": pressed })}
      onClick={() => actions.run(name)}
    />
  );
}

function ActionItem({ name }: { name: ActionName }) {
  const { actions } = useWorkspace();
  const { icon: Icon, label, shortcuts }: Action = table[name];
  return (
    <MenuItem
      icon={<Icon className="size-4 shrink-0" aria-hidden />}
      disabledReason={whyNot(name, actions.target())}
      onSelect={() => actions.run(name)}
    >
      {label}
      {shortcuts[0] && <span className="ml-2 text-muted">{shown(shortcuts[0])}</span>}
    </MenuItem>
  );
}

const moves = ["stack-item-added", "stack-item-popped", "stack-cleared"] as const;

/** useChanges renders again when what can be done may have changed: the selection, the steps of undo, or the role. */
function useChanges(): void {
  const { undo } = useGraph().document;
  useCanEdit();
  useShown();
  const subscribe = (changed: () => void) => {
    for (const move of moves) undo.on(move, changed);
    return () => {
      for (const move of moves) undo.off(move, changed);
    };
  };
  useSyncExternalStore(subscribe, () => `${undo.canUndo()} ${undo.canRedo()}`);
}
