// Definitions as React Flow draws them. A node keeps its object for as long as
// nothing about it changes: React Flow then renders nothing again.
import { type Edge, MarkerType, type Node, Position } from "@xyflow/react";
import type { Definition } from "../workflows/queries.ts";
import { place } from "./layout.ts";
import type { GraphEdge, GraphNode } from "./model.ts";
import { card, cardHeight, note, type Ports, portsOf, spots } from "./ports.ts";

export interface CardData extends Record<string, unknown> {
  node: GraphNode;
  ports: Ports;
}

export type FlowNode = Node<CardData, "task" | "note">;
export type FlowEdge = Edge<{ carries: string | null }>;

const spot = 12; // the size of a handle

export function flowNode(node: GraphNode, edges: readonly GraphEdge[]): FlowNode {
  const ports = portsOf(node, edges);
  const remark = node.type === "note";
  const width = remark ? note.width : card.width;
  const height = remark ? note.height : cardHeight(ports);
  return {
    id: node.id,
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

export function flowEdge(edge: GraphEdge): FlowEdge {
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
    ariaLabel: carries ? `Line carrying ${carries}` : "Line that orders",
  };
}

/** byNode is the lines of each node. */
export function byNode(edges: Iterable<GraphEdge>): Map<string, GraphEdge[]> {
  const map = new Map<string, GraphEdge[]>();
  const add = (id: string, edge: GraphEdge) => {
    const list = map.get(id);
    if (list) list.push(edge);
    else map.set(id, [edge]);
  };
  for (const edge of edges) {
    add(edge.source, edge);
    add(edge.target, edge);
  }
  return map;
}

/** flowOf is a whole definition, laid out where it has no places of its own. */
export function flowOf(definition: Definition): { nodes: FlowNode[]; edges: FlowEdge[] } {
  const nodes = definition.nodes ?? [];
  const edges = definition.edges ?? [];
  const touching = byNode(edges);
  const spread = new Set(nodes.map((node) => `${node.position?.x},${node.position?.y}`)).size;
  const placed = new Map(
    spread < nodes.length ? place(nodes, edges).map((each) => [each.id, { x: each.x, y: each.y }]) : [],
  );
  return {
    nodes: nodes.map((node) => {
      const position = placed.get(node.id) ?? node.position;
      return flowNode({ ...node, ...(position && { position }) }, touching.get(node.id) ?? []);
    }),
    edges: edges.map(flowEdge),
  };
}

export interface Stroke {
  id: string;
  d: string;
  selected: boolean;
}

/** strokes is every line as a straight one, from card to card. */
export function strokes(nodes: readonly FlowNode[], edges: readonly FlowEdge[]): Stroke[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const end = (node: FlowNode, type: "source" | "target", id: string | null | undefined): string => {
    const handle = node.handles?.find((each) => each.type === type && (each.id ?? null) === (id ?? null));
    const x = node.position.x + (handle?.x ?? 0) + (type === "source" ? spot : 0);
    return `${x} ${node.position.y + (handle?.y ?? 0) + spot / 2}`;
  };
  return edges.flatMap(({ id, source, sourceHandle, target, targetHandle, selected = false }) => {
    const [from, to] = [byId.get(source), byId.get(target)];
    if (!from || !to) return [];
    return { id, d: `M${end(from, "source", sourceHandle)}L${end(to, "target", targetHandle)}`, selected };
  });
}
