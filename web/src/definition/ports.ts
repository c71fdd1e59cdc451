// The ports of a step: what cards show, lines join, references name and commands can read.
import type { GraphEdge, GraphNode } from "./model.ts";

/** Line is an edge between two steps. Its ends name steps as whoever draws it does: by id, or by key. */
export type Line = Pick<GraphEdge, "id" | "source" | "target" | "sourceHandle" | "targetHandle">;

export interface Port {
  name: string;
  /** Where an input comes from when no line brings it. */
  from?: string;
  optional?: boolean;
  many?: boolean;
}

export interface Ports {
  inputs: Port[];
  outputs: Port[];
}

/** portsOf lists the ports that a step declares, and those that lines begin or end in besides. */
export function portsOf(node: GraphNode, lines: Iterable<Line>, key: string = node.id): Ports {
  const inputs = new Map<string, Port>();
  const outputs = new Map<string, Port>();
  for (const [name, port] of Object.entries(node.inputs ?? {})) {
    inputs.set(name, { name, optional: port.optional === true, ...(port.from && { from: port.from }) });
  }
  for (const [name, port] of Object.entries(node.outputs ?? {})) {
    outputs.set(name, { name, optional: port.optional === true, many: port.many === true });
  }
  for (const line of lines) {
    if (line.target === key && line.targetHandle && !inputs.has(line.targetHandle))
      inputs.set(line.targetHandle, { name: line.targetHandle });
    if (line.source === key && line.sourceHandle && !outputs.has(line.sourceHandle))
      outputs.set(line.sourceHandle, { name: line.sourceHandle });
  }
  return { inputs: [...inputs.values()], outputs: [...outputs.values()] };
}
