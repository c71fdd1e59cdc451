// The measures of a card and of its ports. The canvas and the run page use the same, so
// that a graph looks the same in both, and lines can be drawn to cards that are out of view.
import type { Ports } from "../definition/ports.ts";

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
