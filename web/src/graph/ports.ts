// The ports of a step, and where they are on its card. The canvas and the run page
// use the same measures, so that a graph looks the same in both, and lines can be
// drawn to cards that are out of view.
import type { GraphEdge, GraphNode } from "../definition/model.ts";

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

export const card = { width: 232, head: 52, row: 24, foot: 8 } as const;
export const note = { width: 232, height: 120 } as const;

export function cardHeight(ports: Ports): number {
  const rows = Math.max(ports.inputs.length, ports.outputs.length);
  return card.head + rows * card.row + (rows > 0 ? card.foot : 0);
}

/** portY returns the middle of a port's row. */
export function portY(row: number): number {
  return card.head + row * card.row + card.row / 2;
}

export interface Spot {
  id: string | null;
  type: "source" | "target";
  x: number;
  y: number;
}

/** spots lists where lines meet a card: its head first, for lines without a port. */
export function spots(ports: Ports): Spot[] {
  const head = card.head / 2;
  return [
    { id: null, type: "target", x: 0, y: head },
    { id: null, type: "source", x: card.width, y: head },
    ...ports.inputs.map((port, row): Spot => ({ id: port.name, type: "target", x: 0, y: portY(row) })),
    ...ports.outputs.map((port, row): Spot => ({ id: port.name, type: "source", x: card.width, y: portY(row) })),
  ];
}
