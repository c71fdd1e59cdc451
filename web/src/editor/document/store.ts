// What the canvas shows. The shared part is projected from the document; the
// selection and one's own drags belong to this tab, and others' drags come from
// their presence. A step is identified by its key.
import type { EdgeChange, NodeChange } from "@xyflow/react";
import type * as Y from "yjs";
import type { Line } from "../../definition/ports.ts";
import { type FlowEdge, type FlowNode, flowEdge, flowNode, linesByStep } from "../../graph/flow.ts";
import type { Placed } from "../../graph/layout.ts";
import type { Document } from "./document.ts";
import type { Link } from "./ydoc.ts";

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
    const onNodes = (events: Y.YEvent<Y.AbstractType<unknown>>[]) => this.refresh(this.changedKeys(events));
    const onEdges = (event: Y.YMapEvent<Link>) => this.edgesChanged(event);
    nodes.observeDeep(onNodes);
    edges.observe(onEdges);
    this.stop = () => {
      nodes.unobserveDeep(onNodes);
      edges.unobserve(onEdges);
    };
    this.show(this.project());
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

  /** select selects exactly these. */
  select(nodes: readonly string[], edges: readonly string[] = []): void {
    const chosen = new Set([...nodes, ...edges]);
    const mark = <T extends FlowNode | FlowEdge>(each: T): T =>
      (each.selected ?? false) === chosen.has(each.id) ? each : { ...each, selected: chosen.has(each.id) };
    this.show({ nodes: this.shown.nodes.map(mark), edges: this.shown.edges.map(mark) });
  }

  applyNodes(changes: NodeChange<FlowNode>[]): void {
    const byKey = new Map<string, (node: FlowNode) => FlowNode>();
    const nudged: Placed[] = [];
    for (const change of changes) {
      if (change.type === "select") byKey.set(change.id, (node) => ({ ...node, selected: change.selected }));
      if (change.type === "position" && change.position && change.dragging && this.document.editable) {
        const position = change.position;
        this.own.set(change.id, position);
        byKey.set(change.id, (node) => ({ ...node, position, dragging: true }));
      }
      // An arrow key moves what is selected without dragging.
      if (change.type === "position" && change.position && !change.dragging && this.own.size === 0)
        nudged.push({ id: change.id, ...change.position });
    }
    if (nudged.length > 0) this.document.move(nudged);
    if (byKey.size === 0) return;
    this.show({ ...this.shown, nodes: this.shown.nodes.map((node) => byKey.get(node.id)?.(node) ?? node) });
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

  /** drop writes where a drag ended: all steps in one step of undo. */
  drop(): void {
    const moved = [...this.own].map(([id, position]) => ({ id, ...position }));
    this.own = new Map();
    if (moved.length === 0) return;
    this.document.move(moved);
    this.refresh(new Set(moved.map(({ id }) => id)));
  }

  /** drags shows where others are dragging steps to. */
  drags(others: Map<string, Place>): void {
    const touched = new Set([...others.keys(), ...this.others.keys()]);
    if (touched.size === 0) return;
    this.others = others;
    this.refresh(touched);
  }

  private project(): Shown {
    const lines = this.lines();
    const touching = linesByStep(lines);
    const nodes = [...this.document.roots.nodes.keys()].flatMap((key) => this.card(key, touching.get(key) ?? []));
    return { nodes, edges: lines.map(flowEdge) };
  }

  /** lines lists the edges whose ends are there. */
  private lines(): Line[] {
    const { nodes } = this.document.roots;
    return this.document.links().filter((link) => nodes.has(link.source) && nodes.has(link.target));
  }

  /** card draws one step where it is, or where somebody drags it. */
  private card(key: string, lines: readonly Line[], old?: FlowNode): FlowNode[] {
    const node = this.document.node(key);
    if (!node) return [];
    const card = flowNode(key, node, lines);
    const position = this.own.get(key) ?? this.others.get(key);
    return [{ ...card, ...(position && { position }), ...(old?.selected && { selected: true }) }];
  }

  /** refresh draws these steps again; all others stay the objects they are. */
  private refresh(keys: ReadonlySet<string>): void {
    if (keys.size === 0) return;
    const { nodes } = this.document.roots;
    const touching = linesByStep(this.document.links() as Line[]);
    const fresh = (key: string, old?: FlowNode) => this.card(key, touching.get(key) ?? [], old);
    const had = new Set(this.shown.nodes.map((node) => node.id));
    const kept = this.shown.nodes.flatMap((node) => (keys.has(node.id) ? fresh(node.id, node) : [node]));
    const added = [...keys].filter((key) => !had.has(key)).flatMap((key) => fresh(key));
    const ends = [...keys].some((key) => !nodes.has(key)) || added.length > 0;
    this.show({ nodes: [...kept, ...added], edges: ends ? this.edgesNow() : this.shown.edges });
  }

  private edgesNow(): FlowEdge[] {
    const old = new Map(this.shown.edges.map((edge) => [edge.id, edge]));
    return this.lines().map((line) => old.get(line.id) ?? flowEdge(line));
  }

  private edgesChanged(event: Y.YMapEvent<Link>): void {
    const changed = event.keysChanged as Set<string>;
    const ends = new Set<string>();
    const note = (edge: { source: string; target: string } | null | undefined) => {
      if (!edge) return;
      ends.add(edge.source);
      ends.add(edge.target);
    };
    for (const edge of this.shown.edges) if (changed.has(edge.id)) note(edge);
    for (const id of changed) note(this.document.roots.edges.get(id));
    const selected = new Set(this.selected().edges);
    const kept = this.shown.edges.filter((edge) => !changed.has(edge.id));
    const fresh = this.lines()
      .filter((line) => changed.has(line.id))
      .map((line) => ({ ...flowEdge(line), ...(selected.has(line.id) && { selected: true }) }));
    this.shown = { ...this.shown, edges: [...kept, ...fresh] };
    this.refresh(ends);
    this.show(this.shown);
  }

  private show(shown: Shown): void {
    this.shown = shown;
    for (const listener of this.listeners) listener();
  }

  /** changedKeys lists the steps that events are about, however deep inside, and those that have another id since. */
  private changedKeys(events: Y.YEvent<Y.AbstractType<unknown>>[]): Set<string> {
    const keys = new Set<string>();
    for (const event of events) {
      const [key] = event.path;
      if (typeof key === "string") keys.add(key);
      else for (const each of (event as Y.YMapEvent<unknown>).keysChanged) keys.add(each);
    }
    for (const { id, data } of this.shown.nodes) if (data.node.id !== this.document.idOf(id)) keys.add(id);
    return keys;
  }
}
