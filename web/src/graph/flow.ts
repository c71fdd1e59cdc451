// The projection of a definition to the cards and lines that React Flow draws. What
// did not change keeps its object, so that React Flow renders nothing again.
import { type Edge, MarkerType, type Node, Position } from "@xyflow/react";
import type { Definition, GraphNode } from "../definition/model.ts";
import { type Line, type Ports, portsOf } from "../definition/ports.ts";
import { place } from "./layout.ts";
import { card, cardHeight, note, spots } from "./ports.ts";

export interface CardData extends Record<string, unknown> {
  node: GraphNode;
  ports: Ports;
}

export type FlowNode = Node<CardData, "task" | "note">;
export type FlowEdge = Edge<{ carries: string | null }>;

const spot = 12; // the size of a handle

/** flowNode draws a step with the lines that begin or end there. Its key is what identifies it on the canvas. */
export function flowNode(key: string, node: GraphNode, lines: readonly Line[]): FlowNode {
  const ports = portsOf(node, lines, key);
  const remark = node.type === "note";
  const width = remark ? note.width : card.width;
  const height = remark ? note.height : cardHeight(ports);
  return {
    id: key,
    type: remark ? "note" : "task",
    position: { x: node.position?.x ?? 0, y: node.position?.y ?? 0 },
    width,
    height,
    measured: { width, height },
    handles: remark
      ? []
      : spots(ports).map(({ id, type, x, y }) => ({
          id,
          type,
          x: x - spot / 2,
          y: y - spot / 2,
          width: spot,
          height: spot,
          position: type === "source" ? Position.Right : Position.Left,
        })),
    ariaLabel: `${remark ? "Note" : "Step"} ${node.name || node.id}`,
    data: { node, ports },
  };
}

export function flowEdge(edge: Line): FlowEdge {
  const carries = edge.sourceHandle ?? null;
  return {
    id: edge.id,
    source: edge.source,
    target: edge.target,
    sourceHandle: carries,
    targetHandle: edge.targetHandle ?? null,
    data: { carries },
    // A line that only orders is dashed.
    ...(carries === null && { style: { strokeDasharray: "5 5" } }),
    markerEnd: { type: MarkerType.ArrowClosed, width: 14, height: 14, color: "var(--muted)" },
    ariaLabel: carries ? `Line for ${carries}` : "Line that sets the order only",
  };
}

/** withProblems marks the lines that have problems. */
export function withProblems(edges: FlowEdge[], faulty: ReadonlySet<string>): FlowEdge[] {
  if (faulty.size === 0) return edges;
  return edges.map((edge) =>
    faulty.has(edge.id) ? { ...edge, className: "faulty", ariaLabel: `${edge.ariaLabel}, has problems` } : edge,
  );
}

/** linesByStep lists the lines of each step. */
export function linesByStep(lines: Iterable<Line>): Map<string, Line[]> {
  const map = new Map<string, Line[]>();
  const add = (key: string, line: Line) => {
    const list = map.get(key);
    if (list) list.push(line);
    else map.set(key, [line]);
  };
  for (const line of lines) {
    add(line.source, line);
    add(line.target, line);
  }
  return map;
}

/** flowOf draws a whole definition, laid out where it has no positions of its own. */
export function flowOf(definition: Definition): { nodes: FlowNode[]; edges: FlowEdge[] } {
  const nodes = definition.nodes ?? [];
  const edges = definition.edges ?? [];
  const touching = linesByStep(edges);
  const spread = new Set(nodes.map((node) => `${node.position?.x},${node.position?.y}`)).size;
  const placed = new Map(
    spread < nodes.length ? place(nodes, edges).map((each) => [each.id, { x: each.x, y: each.y }]) : [],
  );
  return {
    nodes: nodes.map((node) => {
      const position = placed.get(node.id) ?? node.position;
      return flowNode(node.id, { ...node, ...(position && { position }) }, touching.get(node.id) ?? []);
    }),
    edges: edges.map(flowEdge),
  };
}

export interface Stroke {
  id: string;
  d: string;
  selected: boolean;
  className: string;
}

/** strokes draws every line as a straight one, from card to card. */
export function strokes(nodes: readonly FlowNode[], edges: readonly FlowEdge[]): Stroke[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const end = (node: FlowNode, type: "source" | "target", id: string | null | undefined): string => {
    const handle = node.handles?.find((each) => each.type === type && (each.id ?? null) === (id ?? null));
    const x = node.position.x + (handle?.x ?? 0) + (type === "source" ? spot : 0);
    return `${x} ${node.position.y + (handle?.y ?? 0) + spot / 2}`;
  };
  return edges.flatMap(({ id, source, sourceHandle, target, targetHandle, selected = false, className = "" }) => {
    const [from, to] = [byId.get(source), byId.get(target)];
    if (!from || !to) return [];
    return { id, d: `M${end(from, "source", sourceHandle)}L${end(to, "target", targetHandle)}`, selected, className };
  });
}
