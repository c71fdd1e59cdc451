import { useStore as useFlowStore, useReactFlow, ViewportPortal } from "@xyflow/react";
import { MousePointer2 } from "lucide-react";
import { useStore } from "zustand";
import { Tooltip } from "../ui/Tooltip.tsx";
import { useEditor } from "./context.ts";
import type { Person } from "./presence.ts";

/** Cursors shows where the others point. */
export function Cursors() {
  const { presence } = useEditor().session;
  const cursors = useStore(presence, (state) => state.cursors);
  const people = useStore(presence, (state) => state.people);
  const zoom = useFlowStore((state) => state.transform[2]);
  return (
    <ViewportPortal>
      {people.map((person) => {
        const at = cursors.get(person.client);
        if (!at) return null;
        return (
          <div
            key={person.client}
            aria-hidden
            className="pointer-events-none absolute top-0 left-0 z-10 transition-transform duration-75"
            style={{ transform: `translate(${at.x}px, ${at.y}px) scale(${1 / zoom})`, transformOrigin: "0 0" }}
          >
            <MousePointer2 className="size-4.5" style={{ color: person.color, fill: person.color }} />
            <span
              className="ml-3 rounded-full px-2 py-0.5 text-xs whitespace-nowrap text-[white]"
              style={{ background: person.color }}
            >
              {person.name}
            </span>
          </div>
        );
      })}
    </ViewportPortal>
  );
}

/** People lists who else is in the editor. A click goes to where they are. */
export function People() {
  const { session } = useEditor();
  const people = useStore(session.presence, (state) => state.people);
  const flow = useReactFlow();
  const goTo = (person: Person) => {
    const at = session.presence.getState().cursors.get(person.client);
    if (at) void flow.setCenter(at.x, at.y, { zoom: Math.max(0.7, flow.getZoom()), duration: 300 });
  };
  if (people.length === 0) return null;
  return (
    <ul aria-label="Also here" className="flex -space-x-1.5">
      {people.slice(0, 6).map((person) => (
        <li key={person.client}>
          <Tooltip text={`${person.name}${person.role === "viewer" ? ", viewing" : ""}: go to where they are`}>
            <button
              type="button"
              onClick={() => goTo(person)}
              className="grid size-7.5 place-items-center rounded-full border-2 border-surface text-xs font-semibold text-[white]"
              style={{ background: person.color }}
            >
              <span aria-hidden>{initials(person.name)}</span>
              <span className="sr-only">Go to {person.name}</span>
            </button>
          </Tooltip>
        </li>
      ))}
      {people.length > 6 && <li className="self-center pl-3 text-[13px] text-muted">+{people.length - 6}</li>}
    </ul>
  );
}

function initials(name: string): string {
  const words = name.trim().split(/\s+/);
  return ((words[0]?.[0] ?? "?") + (words.length > 1 ? (words.at(-1)?.[0] ?? "") : "")).toUpperCase();
}
