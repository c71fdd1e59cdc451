import { Command } from "cmdk";
import { Dialog } from "../ui/Dialog.tsx";
import { useGraph, useWorkspace } from "./context.ts";
import type { End } from "./document/document.ts";
import { addStep, type Kind, kinds } from "./document/kinds.ts";

export interface InsertAt {
  at: { x: number; y: number };
  /** The end of an edge that was dropped on the empty canvas. */
  from: End | null;
}

/** Insert adds a step by its name, connected with the edge that it was drawn from. */
export function Insert({ at, from, onClose }: InsertAt & { onClose: (added?: string) => void }) {
  const graph = useGraph();
  const { document } = graph;
  const add = (kind: Pick<Kind, "node" | "over">) => onClose(addStep(graph, kind, at, from));
  const steps = document
    .definition()
    .nodes?.filter((node) => node.type !== "note")
    .slice(0, 200);
  return (
    <Searching title={from ? "Insert the next step" : "Add a step"} onClose={() => onClose()}>
      <Command.Group heading="New" className={groupClass}>
        {kinds.map((kind) => (
          <Command.Item
            key={kind.key}
            value={`${kind.name} ${kind.words}`}
            onSelect={() => add(kind)}
            className={itemClass}
          >
            <kind.icon className="size-4.5 text-muted" aria-hidden />
            <span className="font-medium">{kind.name}</span>
            <span className="ml-auto truncate text-[13px] text-muted">{kind.about}</span>
          </Command.Item>
        ))}
      </Command.Group>
      {steps && steps.length > 0 && (
        <Command.Group heading="Copy of" className={groupClass}>
          {steps.map(({ id, position: _, ...node }) => (
            <Command.Item
              key={id}
              value={`${node.name ?? ""} ${id} copy`}
              onSelect={() => add({ node: node as Kind["node"] })}
              className={itemClass}
            >
              {node.name || id}
            </Command.Item>
          ))}
        </Command.Group>
      )}
    </Searching>
  );
}

/** Find goes to a step by its name. */
export function Find({ onClose }: { onClose: () => void }) {
  const graph = useGraph();
  const { show } = useWorkspace();
  return (
    <Searching title="Find a step" onClose={onClose}>
      {graph.now().nodes.map(({ id: key, data: { node } }) => (
        <Command.Item
          key={key}
          value={`${node.name ?? ""} ${node.id} ${(node.text ?? "").slice(0, 80)}`}
          onSelect={() => {
            onClose();
            show(key);
          }}
          className={itemClass}
        >
          {node.name || node.text?.slice(0, 60) || node.id}
          <span className="ml-auto truncate text-[13px] text-muted">{node.image ?? node.interpreter ?? node.type}</span>
        </Command.Item>
      ))}
    </Searching>
  );
}

const itemClass =
  "flex items-center gap-2.5 rounded-md px-2.5 py-2 text-sm select-none data-[selected=true]:bg-sunken cursor-pointer";
const groupClass =
  "[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:text-muted";

function Searching({ title, onClose, children }: { title: string; onClose: () => void; children: React.ReactNode }) {
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title={title}>
      <Command label={title}>
        <Command.Input
          autoFocus
          placeholder="Type to search"
          className="mb-2 h-9.5 w-full rounded-lg border border-field-line bg-surface px-3 text-sm"
        />
        <Command.List className="max-h-80 overflow-y-auto">
          <Command.Empty className="px-3 py-6 text-center text-sm text-muted">No results</Command.Empty>
          {children}
        </Command.List>
      </Command>
    </Dialog>
  );
}
