import { createContext, useContext, useSyncExternalStore } from "react";
import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";
import type { Finding } from "../definition/problems.ts";
import type { Actions } from "./actions/actions.ts";
import type { GraphStore, Shown } from "./document/store.ts";
import type { ProblemStore } from "./problems.ts";
import type { Session, SessionState } from "./session.ts";

export interface EditorContext {
  session: Session;
  problems: ProblemStore;
}

export const Editing = createContext<EditorContext | null>(null);

export function useEditor(): EditorContext {
  const context = useContext(Editing);
  if (!context) throw new Error("outside of the editor");
  return context;
}

/** WorkspaceContext is for what is beside the canvas, once the workflow is open. */
export interface WorkspaceContext {
  actions: Actions;
  /** show selects a step and brings it into view. */
  show: (key: string) => void;
  /** goTo leads to the field that a problem is about. */
  goTo: (finding: Finding) => void;
  /** The field that somebody was led to and that has not been shown yet. */
  sought: SoughtField;
}

export const newSoughtField = () => createStore<{ finding: Finding | null }>(() => ({ finding: null }));
export type SoughtField = ReturnType<typeof newSoughtField>;

export const Working = createContext<WorkspaceContext | null>(null);

export function useWorkspace(): WorkspaceContext {
  const context = useContext(Working);
  if (!context) throw new Error("outside of the workspace");
  return context;
}

export function useSession<T>(select: (state: SessionState) => T): T {
  return useStore(useEditor().session.state, select);
}

export function useGraph(): GraphStore {
  return useSession((state) => state.graph);
}

/** useCanEdit reports whether this person can edit the workflow on this screen. */
export function useCanEdit(): boolean {
  return useSession((state) => state.canEdit && state.lock === null);
}

/** useShown returns everything on the canvas; it renders with every change. */
export function useShown(): Shown {
  const graph = useGraph();
  return useSyncExternalStore(graph.subscribe, graph.now);
}

/** useChosen returns the key of the selected step, if exactly one is selected. */
export function useChosen(): string | null {
  const graph = useGraph();
  return useSyncExternalStore(graph.subscribe, () => {
    const chosen = graph.now().nodes.filter((node) => node.selected);
    return chosen.length === 1 ? (chosen[0]?.id ?? null) : null;
  });
}

/** useFindingsOf lists the problems and warnings of the step with an id. */
export function useFindingsOf(id: string): Finding[] {
  return useStore(useEditor().problems, (state) => state.byNode.get(id) ?? none);
}

const none: Finding[] = [];
