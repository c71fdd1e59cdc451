import { X } from "lucide-react";
import { useState } from "react";
import { IconButton } from "../ui/Button.tsx";
import { Input } from "../ui/Field.tsx";
import { useGraph, useWorkspace } from "./context.ts";
import { add, findKinds } from "./document/kinds.ts";

/** Palette lists the steps that can be added: by dragging, or by a click. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [words, setWords] = useState("");
  const graph = useGraph();
  const { view } = useWorkspace().actions.target();
  const found = findKinds(words);
  return (
    <section
      aria-label="Steps to add"
      data-over-canvas
      className="absolute top-14 left-3 z-10 flex max-h-[calc(100%-6rem)] w-60 flex-col rounded-xl border bg-surface shadow-lift"
    >
      <div className="flex items-center gap-1 p-2 pb-1">
        <Input
          type="search"
          aria-label="Search steps to add"
          placeholder="Search"
          className="h-8.5!"
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
        <IconButton size="sm" label="Close" icon={<X className="size-4" aria-hidden />} onClick={onClose} />
      </div>
      <ul className="min-h-0 space-y-0.5 overflow-y-auto p-1.5 pt-0.5">
        {found.map((kind) => (
          <li key={kind.key}>
            <button
              type="button"
              draggable
              onDragStart={(event) => event.dataTransfer.setData("application/x-millrace", kind.key)}
              onClick={() => {
                const key = add(graph, kind.key, view.middle());
                if (key) view.reveal([key]);
              }}
              className="flex w-full items-start gap-2.5 rounded-lg px-2 py-1.5 text-left hover:bg-sunken"
            >
              <kind.icon className="mt-0.5 size-4 shrink-0 text-accent" aria-hidden />
              <span className="min-w-0">
                <span className="block text-sm font-medium">{kind.name}</span>
                <span className="block text-xs text-muted">{kind.about}</span>
              </span>
            </button>
          </li>
        ))}
        {found.length === 0 && <li className="px-2 py-3 text-sm text-muted">No results</li>}
      </ul>
    </section>
  );
}
