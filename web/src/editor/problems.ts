// What is wrong with the definition, as the server sees it. A live room sends it to
// everybody; without one, the server is asked after each change.
import { createStore } from "zustand/vanilla";
import { type Api, ask, type Schemas } from "../api/client.ts";
import { byStep, type Finding, faultyLines, findingsOf } from "../definition/problems.ts";
import type { Document } from "./document/document.ts";
import type { Findings } from "./live.ts";

interface ProblemState {
  /** Problems, then warnings; null until the server has said what is wrong. */
  list: Finding[] | null;
  /** By the id of the step. */
  byNode: ReadonlyMap<string, Finding[]>;
  /** The lines that have problems, by their ids. */
  lines: ReadonlySet<string>;
}

export const newProblems = () => createStore<ProblemState>(() => ({ list: null, byNode: new Map(), lines: new Set() }));
export type ProblemStore = ReturnType<typeof newProblems>;

/** showFindings puts what the server said into the store. */
export function showFindings(store: ProblemStore, { problems, warnings }: Findings, document: Document): void {
  const list = findingsOf(problems, warnings, document.definition());
  store.setState({ list, byNode: byStep(list), lines: faultyLines(list) });
}

/** pollProblems asks what is wrong, and asks again a moment after each change. */
export function pollProblems(api: Api, document: Document, store: ProblemStore, pause = 700): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let asked = 0;
  const check = async () => {
    const mine = ++asked;
    const definition = document.definition() as unknown as Schemas["ValidateRequest"]["definition"];
    try {
      const found = await ask(api.POST("/api/workflows/validate", { body: { definition } }));
      if (mine === asked) showFindings(store, found, document);
    } catch {
      // The shell tells that the server is away; the next change asks again.
    }
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void check(), pause);
  };
  document.doc.on("update", later);
  void check();
  return () => {
    asked = Number.POSITIVE_INFINITY;
    clearTimeout(timer);
    document.doc.off("update", later);
  };
}
