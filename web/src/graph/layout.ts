// The automatic layout: columns by the longest way to a step, rows ordered so that
// few lines cross. Linear in the size of the graph but for the sorting, so that
// 2,000 steps take a moment and not a minute.
import type { GraphNode } from "../definition/model.ts";
import { type Line, portsOf } from "../definition/ports.ts";
import { card, cardHeight } from "./ports.ts";

export interface Placed {
  id: string;
  x: number;
  y: number;
}

const columnGap = 96;
const rowGap = 32;
const sweeps = 8;

/** place positions every step; the top left corner of all stays where it was. */
export function place(nodes: readonly GraphNode[], edges: readonly Line[]): Placed[] {
  if (nodes.length === 0) return [];
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const ends = edges.filter((edge) => byId.has(edge.source) && byId.has(edge.target) && edge.source !== edge.target);
  const before = lists(nodes, ends, "target", "source");
  const after = lists(nodes, ends, "source", "target");
  const column = columns(nodes, before, after);
  const order = ordered(nodes, column, before, after);
  const touching = new Map<string, Line[]>(nodes.map((node) => [node.id, []]));
  for (const edge of ends) {
    touching.get(edge.source)?.push(edge);
    touching.get(edge.target)?.push(edge);
  }
  const heights = new Map(nodes.map((node) => [node.id, cardHeight(portsOf(node, touching.get(node.id) ?? []))]));
  const left = Math.min(...nodes.map((node) => node.position?.x ?? 0));
  const top = Math.min(...nodes.map((node) => node.position?.y ?? 0));
  const tall = order.map((ids) => ids.reduce((sum, id) => sum + (heights.get(id) ?? 0) + rowGap, -rowGap));
  const most = Math.max(...tall);
  return order.flatMap((ids, at) => {
    let y = top + (most - (tall[at] ?? 0)) / 2;
    return ids.map((id) => {
      const placed = { id, x: left + at * (card.width + columnGap), y: Math.round(y) };
      y += (heights.get(id) ?? 0) + rowGap;
      return placed;
    });
  });
}

type Neighbours = Map<string, string[]>;

function lists(
  nodes: readonly GraphNode[],
  edges: readonly Line[],
  of: "source" | "target",
  other: "source" | "target",
): Neighbours {
  const map: Neighbours = new Map(nodes.map((node) => [node.id, []]));
  for (const edge of edges) map.get(edge[of])?.push(edge[other]);
  return map;
}

/** columns is the longest way to each node; nodes of a circle follow what is before it. */
function columns(nodes: readonly GraphNode[], before: Neighbours, after: Neighbours): Map<string, number> {
  const column = new Map<string, number>();
  const open = new Map(nodes.map((node) => [node.id, before.get(node.id)?.length ?? 0]));
  const ready = nodes.filter((node) => open.get(node.id) === 0).map((node) => node.id);
  const rest = new Set(nodes.map((node) => node.id));
  while (rest.size > 0) {
    if (ready.length === 0) ready.push([...rest][0] as string); // a circle: it has to begin somewhere
    for (let id = ready.pop(); id !== undefined; id = ready.pop()) {
      if (!rest.delete(id)) continue;
      column.set(id, Math.max(0, ...(before.get(id) ?? []).map((each) => (column.get(each) ?? -1) + 1)));
      for (const next of after.get(id) ?? []) {
        open.set(next, (open.get(next) ?? 1) - 1);
        if (open.get(next) === 0) ready.push(next);
      }
    }
  }
  return column;
}

/** ordered sorts each column by the middle of its neighbours, back and forth. */
function ordered(
  nodes: readonly GraphNode[],
  column: Map<string, number>,
  before: Neighbours,
  after: Neighbours,
): string[][] {
  const rows: string[][] = [];
  for (const node of nodes.toSorted((a, b) => (a.position?.y ?? 0) - (b.position?.y ?? 0))) {
    const at = column.get(node.id) ?? 0;
    while (rows.length <= at) rows.push([]);
    rows[at]?.push(node.id);
  }
  const rank = new Map<string, number>();
  const number = (ids: string[]) => {
    for (const [at, id] of ids.entries()) rank.set(id, (at + 0.5) / ids.length);
  };
  rows.forEach(number);
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const forth = sweep % 2 === 0;
    for (const ids of forth ? rows : rows.toReversed()) {
      const middle = new Map(
        ids.map((id) => {
          const near = (forth ? before : after).get(id) ?? [];
          const sum = near.reduce((total, each) => total + (rank.get(each) ?? 0), 0);
          return [id, near.length > 0 ? sum / near.length : (rank.get(id) ?? 0)];
        }),
      );
      ids.sort((a, b) => (middle.get(a) ?? 0) - (middle.get(b) ?? 0));
      number(ids);
    }
  }
  return rows;
}
