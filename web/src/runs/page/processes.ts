// The processes of a pipeline that a step of a run launches.
import type { Definition } from "../../workflows/queries.ts";
import type { RunNode } from "../queries.ts";

/** shapeOf is a text that changes when the graph of a run's processes changes. */
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
    // The positions from the editor leave no space for the processes, so all steps are laid out again.
    nodes: [
      ...(definition.nodes ?? []).map(({ position: _, ...node }) => node),
      ...processes.map(({ id, name }) => ({ id, name, type: "task" as const })),
    ] as NonNullable<Definition["nodes"]>,
    edges: [...(definition.edges ?? []), ...edges],
  };
}

/** failedProcesses lists the processes that failed. */
export const failedProcesses = (nodes: Iterable<RunNode>): RunNode[] =>
  [...nodes].filter((node) => node.launchedBy && node.status === "failed");
