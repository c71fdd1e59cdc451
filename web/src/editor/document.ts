// Everything that edits a workflow in this tab goes through a Document: one
// place that knows whether editing is allowed, and that makes each gesture one
// step of undo.
import * as Y from "yjs";
import { type Placed, place } from "../graph/layout.ts";
import type { GraphEdge, GraphNode } from "../graph/model.ts";
import type { Definition } from "../workflows/queries.ts";
import {
  definitionOf,
  draw,
  freeName,
  type Link,
  LOCAL,
  type NamedRoot,
  newId,
  nodeOf,
  type Roots,
  rootsOf,
  setField,
  setFields,
} from "./graph.ts";

export interface Piece {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

export class Document {
  readonly roots: Roots;
  readonly undo: Y.UndoManager;
  /** Whether this person may edit; a viewer's gestures end here. */
  editable = false;

  constructor(readonly doc: Y.Doc = new Y.Doc()) {
    this.roots = rootsOf(doc);
    const { nodes, edges, parameters, inputs, outputs, extra } = this.roots;
    this.undo = new Y.UndoManager([nodes, edges, parameters, inputs, outputs, extra], {
      trackedOrigins: new Set([LOCAL]),
      captureTimeout: 300,
    });
  }

  definition(): Definition {
    return definitionOf(this.doc);
  }

  node(id: string): GraphNode | null {
    const map = this.roots.nodes.get(id);
    return map ? nodeOf(id, map) : null;
  }

  edges(): GraphEdge[] {
    return [...this.roots.edges.entries()].map(([id, link]) => ({ id, ...link }) as GraphEdge);
  }

  /** edit is one step: it does nothing for those who may not. */
  edit<T>(change: () => T): T | undefined {
    if (!this.editable) return undefined;
    let result: T | undefined;
    this.doc.transact(() => {
      result = change();
    }, LOCAL);
    return result;
  }

  /** step is an edit that undo takes back by itself, however soon the next one follows. */
  step<T>(change: () => T): T | undefined {
    this.undo.stopCapturing();
    const result = this.edit(change);
    this.undo.stopCapturing();
    return result;
  }

  addNode(node: Omit<GraphNode, "id"> & { id?: string }): string | undefined {
    return this.step(() => this.put(node));
  }

  private put(node: Partial<GraphNode>): string {
    const id = node.id && !this.roots.nodes.has(node.id) ? node.id : newId("n");
    const map = new Y.Map<unknown>();
    this.roots.nodes.set(id, map);
    setFields(map, { type: "task", ...(node.type !== "note" && { command: "" }), ...node });
    return id;
  }

  /** addAfter inserts a node and joins it with the end that it was drawn from. */
  addAfter(node: Omit<GraphNode, "id">, from: { node: string; handle: string | null; type: "source" | "target" }) {
    return this.step(() => {
      const id = this.put(node);
      if (node.type !== "note") {
        if (from.type === "source") this.link(from.node, from.handle, id, null);
        else this.link(id, null, from.node, from.handle);
      }
      return id;
    });
  }

  connect(
    source: string,
    sourceHandle: string | null,
    target: string,
    targetHandle: string | null,
  ): string | undefined {
    return this.step(() => this.link(source, sourceHandle, target, targetHandle));
  }

  /** order lets one step wait for another, without files. */
  order(source: string, target: string): string | undefined {
    return this.step(() => this.join(source, null, target, null));
  }

  // A line drawn to a whole node carries files where that is clear.
  private link(source: string, from: string | null, target: string, to: string | null): string | undefined {
    const outputs = Object.keys(this.node(source)?.outputs ?? {});
    const sourceHandle = from ?? (outputs.length === 1 ? (outputs[0] ?? null) : null);
    return this.join(source, sourceHandle, target, sourceHandle ? (to ?? this.portFor(target, sourceHandle)) : null);
  }

  // portFor is where a line ends that was drawn to a whole node: the input of
  // the output's name, the one input that waits for something, or a new one.
  private portFor(target: string, wanted: string): string {
    const inputs = this.node(target)?.inputs ?? {};
    if (wanted in inputs) return wanted;
    const fed = new Set(this.edges().flatMap((edge) => (edge.target === target ? (edge.targetHandle ?? []) : [])));
    const waiting = Object.entries(inputs).filter(([name, port]) => !port.from && !port.optional && !fed.has(name));
    return waiting.length === 1 ? (waiting[0]?.[0] ?? wanted) : wanted;
  }

  private join(
    source: string,
    sourceHandle: string | null,
    target: string,
    targetHandle: string | null,
  ): string | undefined {
    const link = { source, target, ...(sourceHandle && targetHandle && { sourceHandle, targetHandle }) };
    const twin = this.edges().some(
      (edge) =>
        edge.source === source &&
        edge.target === target &&
        (edge.sourceHandle ?? null) === sourceHandle &&
        (edge.targetHandle ?? null) === targetHandle,
    );
    if (twin || source === target || this.reaches(target, source)) return undefined;
    const id = newId("e");
    this.roots.edges.set(id, link as Link);
    return id;
  }

  /** reaches tells whether one node comes before another: joining them the other way would be a circle. */
  reaches(from: string, to: string): boolean {
    return from === to || this.after(from).has(to);
  }

  /** after is every node that waits for this one, near or far. */
  after(from: string): Set<string> {
    const next = new Map<string, string[]>();
    for (const edge of this.edges()) {
      const list = next.get(edge.source);
      if (list) list.push(edge.target);
      else next.set(edge.source, [edge.target]);
    }
    const seen = new Set<string>();
    const waiting = [...(next.get(from) ?? [])];
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      if (seen.has(id)) continue;
      seen.add(id);
      waiting.push(...(next.get(id) ?? []));
    }
    return seen;
  }

  setEdge(id: string, link: Link): void {
    this.edit(() => this.roots.edges.set(id, link));
  }

  remove(nodes: readonly string[], edges: readonly string[]): void {
    const gone = new Set(nodes);
    this.step(() => {
      for (const id of edges) this.roots.edges.delete(id);
      for (const [id, link] of this.roots.edges.entries()) {
        if (gone.has(link.source) || gone.has(link.target)) this.roots.edges.delete(id);
      }
      for (const id of gone) this.roots.nodes.delete(id);
    });
  }

  /** move places nodes: one step, however many. */
  move(positions: Iterable<Placed>): void {
    this.step(() => {
      for (const { id, x, y } of positions) {
        const map = this.roots.nodes.get(id);
        if (map) setField(map, "position", { x: Math.round(x), y: Math.round(y) });
      }
    });
  }

  setField(id: string, key: string, value: unknown): void {
    this.edit(() => {
      const map = this.roots.nodes.get(id);
      if (map) setField(map, key, value);
    });
  }

  /** command is the shared text of a node's command. */
  command(id: string): Y.Text | null {
    const map = this.roots.nodes.get(id);
    const text = map?.get("command");
    if (text instanceof Y.Text) return text;
    if (!map) return null;
    return (
      this.edit(() => {
        map.set("command", new Y.Text(typeof text === "string" ? text : ""));
        return map.get("command") as Y.Text;
      }) ?? null
    );
  }

  setNamed(root: NamedRoot, name: string, value: unknown): void {
    this.edit(() => {
      if (value === undefined) this.roots[root].delete(name);
      else this.roots[root].set(name, value);
    });
  }

  rename(root: NamedRoot, from: string, to: string): void {
    this.step(() => {
      const value = this.roots[root].get(from);
      if (value === undefined || this.roots[root].has(to)) return;
      this.roots[root].set(to, value);
      this.roots[root].delete(from);
    });
  }

  /** renamePort keeps the lines that end in a port with it. */
  renamePort(id: string, side: "inputs" | "outputs", from: string, to: string): void {
    this.step(() => {
      const map = this.roots.nodes.get(id);
      if (!map) return;
      const ports = this.node(id)?.[side] ?? {};
      const { [from]: port, ...others } = ports as Record<string, unknown>;
      if (to in others) return;
      if (port !== undefined) setField(map, side, { ...others, [to]: port });
      for (const [edgeId, link] of this.roots.edges.entries()) {
        if (side === "inputs" && link.target === id && link.targetHandle === from)
          this.roots.edges.set(edgeId, { ...link, targetHandle: to });
        if (side === "outputs" && link.source === id && link.sourceHandle === from)
          this.roots.edges.set(edgeId, { ...link, sourceHandle: to });
      }
    });
  }

  removePort(id: string, side: "inputs" | "outputs", name: string): void {
    this.step(() => {
      const map = this.roots.nodes.get(id);
      if (!map) return;
      const { [name]: _, ...others } = (this.node(id)?.[side] ?? {}) as Record<string, unknown>;
      setField(map, side, Object.keys(others).length > 0 ? others : undefined);
      for (const [edgeId, link] of this.roots.edges.entries()) {
        const end = side === "inputs" ? [link.target, link.targetHandle] : [link.source, link.sourceHandle];
        if (end[0] === id && end[1] === name) this.roots.edges.delete(edgeId);
      }
    });
  }

  /** take is what copying takes: nodes, and the lines between them. */
  take(ids: readonly string[]): Piece {
    const chosen = new Set(ids);
    return {
      nodes: ids.flatMap((id) => this.node(id) ?? []),
      edges: this.edges().filter((edge) => chosen.has(edge.source) && chosen.has(edge.target)),
    };
  }

  /** paste adds a copied piece under new ids, with its middle at a point or a little beside where it was. */
  paste(piece: Piece, at?: { x: number; y: number }): string[] {
    const xs = piece.nodes.map((node) => node.position?.x ?? 0);
    const ys = piece.nodes.map((node) => node.position?.y ?? 0);
    const shift = at
      ? { x: at.x - (Math.min(...xs) + Math.max(...xs)) / 2, y: at.y - (Math.min(...ys) + Math.max(...ys)) / 2 }
      : { x: 40, y: 40 };
    return (
      this.step(() => {
        const ids = new Map<string, string>();
        for (const { id, ...node } of piece.nodes) {
          const x = Math.round((node.position?.x ?? 0) + shift.x);
          const y = Math.round((node.position?.y ?? 0) + shift.y);
          ids.set(id, this.put({ ...node, position: { x, y } } as Partial<GraphNode>));
        }
        for (const { id: _, ...link } of piece.edges) {
          const [source, target] = [ids.get(link.source), ids.get(link.target)];
          if (source && target) this.roots.edges.set(newId("e"), { ...link, source, target } as Link);
        }
        return [...ids.values()];
      }) ?? []
    );
  }

  /** tidy lays out all nodes, or those chosen, around where they were. */
  tidy(ids?: readonly string[]): void {
    const piece = this.take(ids ?? [...this.roots.nodes.keys()]);
    const tasks = piece.nodes.filter((node) => node.type !== "note");
    if (tasks.length > 0) this.move(place(tasks, piece.edges));
  }

  /** replace makes the document say another definition, as one step. */
  replace(definition: Definition): void {
    if (!this.editable) return;
    this.undo.stopCapturing();
    draw(this.doc, definition, LOCAL);
    this.undo.stopCapturing();
  }

  freeName(root: NamedRoot, wanted: string): string {
    return freeName(wanted, (name) => this.roots[root].has(name));
  }

  destroy(): void {
    this.undo.destroy();
    this.doc.destroy();
  }
}
