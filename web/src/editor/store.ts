// What the canvas shows: three layers in one list. What is shared comes from
// the document; selection and measures are this tab's own; places during a
// drag, one's own and others', pass and are not kept.
import type { EdgeChange, NodeChange } from "@xyflow/react";
import * as Y from "yjs";
import { byNode, type FlowEdge, type FlowNode, flowEdge, flowNode } from "../graph/flow.ts";
import type { Placed } from "../graph/layout.ts";
import type { GraphEdge } from "../graph/model.ts";
import type { Document } from "./document.ts";
import { type Link, nodeOf } from "./graph.ts";

export interface Shown {
  nodes: FlowNode[];
  edges: FlowEdge[];
}

type Place = { x: number; y: number };

export class GraphStore {
  private shown: Shown = { nodes: [], edges: [] };
  private readonly listeners = new Set<() => void>();
  private own = new Map<string, Place>();
  private others = new Map<string, Place>();
  private readonly stop: () => void;

  constructor(readonly document: Document) {
    const { nodes, edges } = document.roots;
    const onNodes = (events: Y.YEvent<Y.AbstractType<unknown>>[]) => this.refresh(changedIds(events));
    const onEdges = (event: Y.YMapEvent<Link>) => this.edgesChanged(event);
    nodes.observeDeep(onNodes);
    edges.observe(onEdges);
    this.stop = () => {
      nodes.unobserveDeep(onNodes);
      edges.unobserve(onEdges);
    };
    this.rebuild();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  now = (): Shown => this.shown;

  destroy(): void {
    this.stop();
    this.listeners.clear();
  }

  selected(): { nodes: string[]; edges: string[] } {
    const ids = (list: { id: string; selected?: boolean }[]) =>
      list.filter((each) => each.selected).map(({ id }) => id);
    return { nodes: ids(this.shown.nodes), edges: ids(this.shown.edges) };
  }

  /** select chooses exactly these. */
  select(nodes: readonly string[], edges: readonly string[] = []): void {
    const chosen = new Set([...nodes, ...edges]);
    const mark = <T extends FlowNode | FlowEdge>(each: T): T =>
      (each.selected ?? false) === chosen.has(each.id) ? each : { ...each, selected: chosen.has(each.id) };
    this.show({ nodes: this.shown.nodes.map(mark), edges: this.shown.edges.map(mark) });
  }

  applyNodes(changes: NodeChange<FlowNode>[]): void {
    const byId = new Map<string, (node: FlowNode) => FlowNode>();
    const nudged: Placed[] = [];
    for (const change of changes) {
      if (change.type === "select") byId.set(change.id, (node) => ({ ...node, selected: change.selected }));
      if (change.type === "position" && change.position && change.dragging && this.document.editable) {
        const position = change.position;
        this.own.set(change.id, position);
        byId.set(change.id, (node) => ({ ...node, position, dragging: true }));
      }
      // An arrow key moves what is chosen without dragging.
      if (change.type === "position" && change.position && !change.dragging && this.own.size === 0)
        nudged.push({ id: change.id, ...change.position });
    }
    if (nudged.length > 0) this.document.move(nudged);
    if (byId.size === 0) return;
    this.show({ ...this.shown, nodes: this.shown.nodes.map((node) => byId.get(node.id)?.(node) ?? node) });
  }

  applyEdges(changes: EdgeChange<FlowEdge>[]): void {
    const chosen = new Map(changes.flatMap((each) => (each.type === "select" ? [[each.id, each.selected]] : [])));
    if (chosen.size === 0) return;
    const edges = this.shown.edges.map((edge) => {
      const selected = chosen.get(edge.id);
      return selected === undefined ? edge : { ...edge, selected };
    });
    this.show({ ...this.shown, edges });
  }

  dragged(): ReadonlyMap<string, Place> {
    return this.own;
  }

  /** drop writes where a drag ended: all nodes in one step. */
  drop(): void {
    const moved = [...this.own].map(([id, position]) => ({ id, ...position }));
    this.own = new Map();
    this.document.move(moved);
    this.refresh(new Set(moved.map(({ id }) => id)));
  }

  /** drags shows where others are dragging nodes to. */
  drags(others: Map<string, Place>): void {
    const touched = new Set([...others.keys(), ...this.others.keys()]);
    if (touched.size === 0) return;
    this.others = others;
    this.refresh(touched);
  }

  private rebuild(): void {
    const all = this.document.edges();
    const touching = byNode(all);
    const nodes = [...this.document.roots.nodes.entries()]
      .filter(([, map]) => map instanceof Y.Map)
      .map(([id, map]) => this.placed(flowNode(nodeOf(id, map), touching.get(id) ?? [])));
    this.show({ nodes, edges: this.known(all).map(flowEdge) });
  }

  private known(edges: GraphEdge[]): GraphEdge[] {
    const { nodes } = this.document.roots;
    return edges.filter((edge) => nodes.has(edge.source) && nodes.has(edge.target));
  }

  private placed(node: FlowNode): FlowNode {
    const position = this.own.get(node.id) ?? this.others.get(node.id);
    return position ? { ...node, position } : node;
  }

  /** refresh reads these nodes again; all others stay the objects they are. */
  private refresh(ids: ReadonlySet<string>): void {
    if (ids.size === 0) return;
    const { nodes } = this.document.roots;
    const touching = byNode(this.document.edges());
    const fresh = (id: string, old?: FlowNode): FlowNode[] => {
      const map = nodes.get(id);
      if (!(map instanceof Y.Map)) return [];
      const next = this.placed(flowNode(nodeOf(id, map), touching.get(id) ?? []));
      return [old?.selected ? { ...next, selected: true } : next];
    };
    const had = new Set(this.shown.nodes.map((node) => node.id));
    const kept = this.shown.nodes.flatMap((node) => (ids.has(node.id) ? fresh(node.id, node) : [node]));
    const added = [...ids].filter((id) => !had.has(id)).flatMap((id) => fresh(id));
    const gone = [...ids].some((id) => !nodes.has(id)) || added.length > 0;
    this.show({ nodes: [...kept, ...added], edges: gone ? this.edgesNow() : this.shown.edges });
  }

  private edgesNow(): FlowEdge[] {
    const old = new Map(this.shown.edges.map((edge) => [edge.id, edge]));
    return this.known(this.document.edges()).map((edge) => old.get(edge.id) ?? flowEdge(edge));
  }

  private edgesChanged(event: Y.YMapEvent<Link>): void {
    const changed = event.keysChanged as Set<string>;
    const ends = new Set<string>();
    const note = (edge: { source: string; target: string } | undefined) => {
      if (!edge) return;
      ends.add(edge.source);
      ends.add(edge.target);
    };
    for (const edge of this.shown.edges) if (changed.has(edge.id)) note(edge);
    for (const id of changed) {
      note(this.document.roots.edges.get(id));
    }
    const selected = new Set(this.selected().edges);
    const kept = this.shown.edges.filter((edge) => !changed.has(edge.id));
    const fresh = this.known(this.document.edges())
      .filter((edge) => changed.has(edge.id))
      .map((edge) => ({ ...flowEdge(edge), ...(selected.has(edge.id) && { selected: true }) }));
    this.shown = { ...this.shown, edges: [...kept, ...fresh] };
    this.refresh(ends);
    this.show(this.shown);
  }

  private show(shown: Shown): void {
    this.shown = shown;
    for (const listener of this.listeners) listener();
  }
}

/** changedIds is which nodes some events are about, however deep inside of them. */
function changedIds(events: Y.YEvent<Y.AbstractType<unknown>>[]): Set<string> {
  const ids = new Set<string>();
  for (const event of events) {
    const [id] = event.path;
    if (typeof id === "string") ids.add(id);
    else for (const key of (event as Y.YMapEvent<unknown>).keysChanged) ids.add(key);
  }
  return ids;
}
