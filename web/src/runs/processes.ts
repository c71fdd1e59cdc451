// Pipelines: those that run elsewhere and are watched here, and those that a step of a run launches.
import type { Definition } from "../workflows/queries.ts";
import type { Run, RunNode } from "./runStore.ts";

/** elsewhere tells whether another engine carries the whole run out: there is nothing to start or retry here. */
export const elsewhere = (run: Pick<Run, "kind">): boolean => run.kind === "reported";

/** shapeOf is what there is to draw of the processes of a run, as text: it changes when the drawing does. */
export function shapeOf(nodes: Iterable<RunNode>): string {
  const list = [...nodes].filter((node) => node.launchedBy);
  return list.length === 0
    ? ""
    : JSON.stringify(list.map(({ id, name, launchedBy, follows }) => ({ id, name, launchedBy, follows })));
}

type Process = Pick<RunNode, "id" | "name" | "launchedBy" | "follows">;

/** withProcesses is a definition with the processes of its pipeline behind the step that launches it. */
export function withProcesses(definition: Definition, shape: string): Definition {
  if (shape === "") return definition;
  const processes = JSON.parse(shape) as Process[];
  const edges = processes.flatMap(({ id, launchedBy, follows }) =>
    (follows?.length ? follows : [launchedBy ?? ""]).map((from) => ({ id: `${from}>${id}`, source: from, target: id })),
  );
  return {
    ...definition,
    // All are placed anew: the places of the editor have no room for these.
    nodes: [
      ...(definition.nodes ?? []).map(({ position: _, ...node }) => node),
      ...processes.map(({ id, name }) => ({ id, name, type: "task" as const })),
    ] as NonNullable<Definition["nodes"]>,
    edges: [...(definition.edges ?? []), ...edges],
  };
}

/** failedProcesses are those that failed, for people. */
export const failedProcesses = (nodes: Iterable<RunNode>): RunNode[] =>
  [...nodes].filter((node) => node.launchedBy && node.status === "failed");
