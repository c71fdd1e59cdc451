// What is wrong with the graph, as the server sees it: the same list for
// everybody, each entry with the node it is about.
import { createStore } from "zustand/vanilla";
import { api, ask, type Schemas } from "../api/client.ts";
import type { Definition } from "../workflows/queries.ts";
import type { Document } from "./document.ts";

export type Problem = Schemas["Problem"] & { node: string | null };

interface ProblemState {
  /** Null until they were asked for. */
  list: Problem[] | null;
  byNode: Map<string, Problem[]>;
}

export const newProblems = () => createStore<ProblemState>(() => ({ list: null, byNode: new Map() }));
export type ProblemStore = ReturnType<typeof newProblems>;

/** located finds the node that a path such as nodes[2].inputs.reads is about. */
export function located(problem: Schemas["Problem"], definition: Definition): Problem {
  const [, list, index] = /^(nodes|edges)\[(\d+)\]/.exec(problem.path) ?? [];
  if (list === "nodes") return { ...problem, node: definition.nodes?.[Number(index)]?.id ?? null };
  if (list === "edges") return { ...problem, node: definition.edges?.[Number(index)]?.target ?? null };
  const output = /^outputs\.(\w+)/.exec(problem.path)?.[1];
  const from = output ? definition.outputs?.[output]?.from : undefined;
  return { ...problem, node: definition.nodes?.find((node) => from?.startsWith(`${node.id}.`))?.id ?? null };
}

/** watchProblems asks again a moment after each change. */
export function watchProblems(document: Document, store: ProblemStore, pause = 700): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let asked = 0;
  const check = async () => {
    const mine = ++asked;
    const definition = document.definition();
    try {
      const { problems } = await ask(
        api.POST("/api/workflows/validate", {
          body: { definition: definition as unknown as Schemas["ValidateRequest"]["definition"] },
        }),
      );
      if (mine !== asked) return;
      const list = problems.map((problem) => located(problem, definition));
      const byNode = new Map<string, Problem[]>();
      for (const each of list) if (each.node) byNode.set(each.node, [...(byNode.get(each.node) ?? []), each]);
      store.setState({ list, byNode });
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
