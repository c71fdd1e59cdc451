import { createContext, useContext, useSyncExternalStore } from "react";
import { useStore } from "zustand";
import type { Problem, ProblemStore } from "./problems.ts";
import type { Session, SessionState } from "./session.ts";
import type { GraphStore, Shown } from "./store.ts";

export interface EditorContext {
  session: Session;
  problems: ProblemStore;
  /** Why this person cannot edit; null when they can. */
  lock: string | null;
  /** show selects a node and brings it into view. */
  show: (id: string) => void;
}

export const Editing = createContext<EditorContext | null>(null);

export function useEditor(): EditorContext {
  const context = useContext(Editing);
  if (!context) throw new Error("outside of the editor");
  return context;
}

export function useSession<T>(select: (state: SessionState) => T): T {
  return useStore(useEditor().session.state, select);
}

export function useGraph(): GraphStore {
  return useSession((state) => state.graph);
}

/** useShown is everything on the canvas; it renders with every change. */
export function useShown(): Shown {
  const graph = useGraph();
  return useSyncExternalStore(graph.subscribe, graph.now);
}

/** useChosen is the one chosen node, if it is one. */
export function useChosen(): string | null {
  const graph = useGraph();
  return useSyncExternalStore(graph.subscribe, () => {
    const chosen = graph.now().nodes.filter((node) => node.selected);
    return chosen.length === 1 ? (chosen[0]?.id ?? null) : null;
  });
}

export function useProblemsOf(id: string): Problem[] {
  return useStore(useEditor().problems, (state) => state.byNode.get(id) ?? none);
}

const none: Problem[] = [];
