// Everything that edits a workflow in this tab goes through a Document: it knows
// whether editing is allowed, and makes each gesture one step of undo. It names
// steps by their keys, which never change, unless a name says `id`.
import * as Y from "yjs";
import { isRecord } from "../../api/failure.ts";
import { type Keyed, merge, rekeyed } from "../../definition/merge.ts";
import type { Definition, Edit, GraphEdge, GraphNode, NamedPart } from "../../definition/model.ts";
import { freeName, newId } from "../../definition/names.ts";
import { stepsAfter } from "../../definition/order.ts";
import { type Placed, place } from "../../graph/layout.ts";
import {
  definitionOf,
  idsOf,
  isShared,
  keyedOf,
  type Link,
  LOCAL,
  linksOf,
  memberOf,
  newStep,
  nodeOf,
  type Roots,
  rootsOf,
  setField,
  setMember,
  type TextField,
  textOf,
  writeDefinition,
  writeKeyed,
} from "./ydoc.ts";

/** Piece is steps that were copied, with the edges between them. Its ids are those of the definition. */
export interface Piece {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

export type Side = "inputs" | "outputs";

/** End is one end of an edge that is being drawn. */
export interface End {
  key: string;
  handle: string | null;
  type: "source" | "target";
}

export class Document {
  readonly roots: Roots;
  readonly undo: Y.UndoManager;
  /** Whether this person may edit. Where they may not, every edit does nothing. */
  editable = false;
  private ids: ReadonlyMap<string, string>;

  constructor(readonly doc: Y.Doc = new Y.Doc()) {
    this.roots = rootsOf(doc);
    const { nodes, edges, parameters, inputs, outputs, extra } = this.roots;
    this.undo = new Y.UndoManager([nodes, edges, parameters, inputs, outputs, extra], {
      trackedOrigins: new Set([LOCAL]),
      captureTimeout: 300,
      deleteFilter: (item) => !isShared(this.roots, item),
    });
    this.ids = idsOf(nodes);
    nodes.observeDeep((events) => {
      if (events.some(changesIds)) this.ids = idsOf(nodes, this.ids);
    });
  }

  definition(): Definition {
    return definitionOf(this.doc, this.ids);
  }

  keyed(): Keyed {
    return keyedOf(this.doc, this.ids);
  }

  /** idOf returns the id of a step. */
  idOf(key: string): string {
    return this.ids.get(key) ?? key;
  }

  /** keyOf returns the key of the step with an id. */
  keyOf(id: string): string | null {
    if (this.ids.get(id) === id) return id;
    for (const [key, each] of this.ids) if (each === id) return key;
    return null;
  }

  /** node reads a step. */
  node(key: string): GraphNode | null {
    const map = this.roots.nodes.get(key);
    return map instanceof Y.Map ? nodeOf(map, this.idOf(key)) : null;
  }

  /** links lists the edges. Their ends are keys. */
  links(): (Link & { id: string })[] {
    return linksOf(this.roots).map(([id, link]) => ({ ...link, id }));
  }

  /** isOwn reports whether the origin of a transaction is an edit of this tab. */
  isOwn(origin: unknown): boolean {
    return origin === this.undo || this.undo.trackedOrigins.has(origin);
  }

  /** edit makes a change that undo takes back together with what was edited just before. */
  edit<T>(change: () => T): T | undefined {
    if (!this.editable) return undefined;
    let result: T | undefined;
    this.doc.transact(() => {
      result = change();
    }, LOCAL);
    return result;
  }

  /** step makes a change that undo takes back by itself, however soon the next one follows. */
  step<T>(change: () => T): T | undefined {
    this.undo.stopCapturing();
    const result = this.edit(change);
    this.undo.stopCapturing();
    return result;
  }

  addNode(node: Omit<GraphNode, "id"> & { id?: string }): string | undefined {
    return this.step(() => this.put(node));
  }

  /** put adds a step, connected with the end that an edge was drawn from. It belongs into an edit. */
  put(node: Omit<GraphNode, "id"> & { id?: string }, from: End | null = null): string {
    const key = node.id && !this.roots.nodes.has(node.id) ? node.id : newId("n");
    const { id: _, ...fields } = node;
    this.roots.nodes.set(key, newStep(key, { type: "task", ...fields }));
    if (from && node.type !== "note") {
      if (from.type === "source") this.link(from.key, from.handle, key, null);
      else this.link(key, null, from.key, from.handle);
    }
    return key;
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

  // An edge drawn to a whole step carries files where that is clear.
  private link(source: string, from: string | null, target: string, to: string | null): string | undefined {
    const outputs = Object.keys(this.node(source)?.outputs ?? {});
    const sourceHandle = from ?? (outputs.length === 1 ? (outputs[0] ?? null) : null);
    return this.join(source, sourceHandle, target, sourceHandle ? (to ?? this.portFor(target, sourceHandle)) : null);
  }

  // portFor chooses where an edge ends that was drawn to a whole step: the input of
  // the output's name, the one input that waits for something, or a new one.
  private portFor(target: string, wanted: string): string {
    const inputs = this.node(target)?.inputs ?? {};
    if (Object.hasOwn(inputs, wanted)) return wanted;
    const fed = new Set(this.links().flatMap((link) => (link.target === target ? (link.targetHandle ?? []) : [])));
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
    const twin = this.links().some(
      (each) =>
        each.source === source &&
        each.target === target &&
        (each.sourceHandle ?? null) === sourceHandle &&
        (each.targetHandle ?? null) === targetHandle,
    );
    if (twin || source === target || this.reaches(target, source)) return undefined;
    const id = newId("e");
    this.roots.edges.set(id, link as Link);
    return id;
  }

  /** reaches reports whether one step comes before another, so that an edge back would close a circle. */
  reaches(from: string, to: string): boolean {
    return from === to || stepsAfter(from, this.links()).has(to);
  }

  remove(nodes: readonly string[], edges: readonly string[]): void {
    const gone = new Set(nodes);
    this.step(() => {
      for (const id of edges) this.roots.edges.delete(id);
      for (const { id, source, target } of this.links()) {
        if (gone.has(source) || gone.has(target)) this.roots.edges.delete(id);
      }
      for (const key of gone) this.roots.nodes.delete(key);
    });
  }

  /** move places steps: one step of undo, however many. */
  move(positions: Iterable<Placed>): void {
    this.step(() => {
      for (const { id: key, x, y } of positions) {
        const map = this.roots.nodes.get(key);
        if (map) setField(map, "position", { x: Math.round(x), y: Math.round(y) });
      }
    });
  }

  setField(key: string, field: string, value: unknown): void {
    this.edit(() => {
      const map = this.roots.nodes.get(key);
      if (map) setField(map, field, value);
    });
  }

  /** text returns the shared text of a step's field; null where it has none yet. */
  text(key: string, field: TextField): Y.Text | null {
    const text = this.roots.nodes.get(key)?.get(field);
    return text instanceof Y.Text ? text : null;
  }

  /** startText gives a step a text to type into. It is no edit that undo takes back. */
  startText(key: string, field: TextField): void {
    const map = this.roots.nodes.get(key);
    if (this.editable && map) textOf(map, field);
  }

  setNamed(part: NamedPart, name: string, value: unknown): void {
    this.edit(() => setMember(this.roots[part], name, value));
  }

  /** named reads a parameter, or an input or output of the workflow. */
  named(part: NamedPart, name: string): unknown {
    return memberOf(this.roots[part].get(name));
  }

  removePort(key: string, side: Side, name: string): void {
    this.step(() => {
      const map = this.roots.nodes.get(key);
      if (!map) return;
      const { [name]: _, ...others } = (this.node(key)?.[side] ?? {}) as Record<string, unknown>;
      setField(map, side, Object.keys(others).length > 0 ? others : undefined);
      for (const link of this.links()) {
        const end = side === "inputs" ? [link.target, link.targetHandle] : [link.source, link.sourceHandle];
        if (end[0] === key && end[1] === name) this.roots.edges.delete(link.id);
      }
    });
  }

  /** apply makes edits as one step of undo. Their paths name steps by id: `nodes.trim.command`, `edges.e1`. */
  apply(edits: readonly Edit[]): void {
    this.step(() => {
      for (const edit of edits) this.set(edit.path.split("."), edit.value ?? undefined);
    });
  }

  /** set writes one field of the definition. */
  private set([part = "", name = "", ...path]: string[], value: unknown): void {
    const { nodes, edges, extra } = this.roots;
    if (part === "nodes") {
      const key = this.keyOf(name);
      const map = key === null ? undefined : nodes.get(key);
      const [field, ...inside] = path;
      if (key === null || !map) return;
      if (field) setField(map, field, changed(this.node(key)?.[field], inside, value));
      else if (value === undefined) this.remove([key], []);
    } else if (part === "edges") {
      const next = changed(edges.get(name), path, this.keyedEnds(path, value));
      if (next === undefined) edges.delete(name);
      else edges.set(name, next as Link);
    } else if (part === "parameters" || part === "inputs" || part === "outputs") {
      this.setNamed(part, name, changed(this.named(part, name), path, value));
    } else {
      const next = changed(extra.get(part), name === "" ? [] : [name, ...path], value);
      if (next === undefined) extra.delete(part);
      else extra.set(part, next);
    }
  }

  /** keyedEnds replaces the ids of steps in an edit of a line with their keys. */
  private keyedEnds(path: readonly string[], value: unknown): unknown {
    const key = (id: unknown) => (typeof id === "string" ? (this.keyOf(id) ?? id) : id);
    if (path[0] === "source" || path[0] === "target") return key(value);
    if (path.length > 0 || !isRecord(value)) return value;
    return { ...value, source: key(value.source), target: key(value.target) };
  }

  /** take copies steps, and the edges between them. */
  take(keys: readonly string[]): Piece {
    const chosen = new Set(keys);
    const links = this.links().filter((link) => chosen.has(link.source) && chosen.has(link.target));
    return {
      nodes: keys.flatMap((key) => this.node(key) ?? []),
      edges: links.map(
        (link) => ({ ...link, source: this.idOf(link.source), target: this.idOf(link.target) }) as GraphEdge,
      ),
    };
  }

  /** paste adds a copied piece under new ids, moved by an offset. It returns the keys. */
  paste(piece: Piece, offset: { x: number; y: number }): string[] {
    return (
      this.step(() => {
        const keys = new Map<string, string>();
        for (const { id, ...node } of piece.nodes) {
          const x = Math.round((node.position?.x ?? 0) + offset.x);
          const y = Math.round((node.position?.y ?? 0) + offset.y);
          keys.set(id, this.put({ ...node, position: { x, y } } as Omit<GraphNode, "id">));
        }
        for (const { id: _, ...link } of piece.edges) {
          const [source, target] = [keys.get(link.source), keys.get(link.target)];
          if (source && target) this.roots.edges.set(newId("e"), { ...link, source, target } as Link);
        }
        return [...keys.values()];
      }) ?? []
    );
  }

  /** tidy lays out all steps, or those with these keys, around where they were. */
  tidy(keys?: readonly string[]): void {
    const chosen = new Set(keys ?? this.roots.nodes.keys());
    const tasks = [...chosen].flatMap((key) => {
      const node = this.node(key);
      return node && node.type !== "note" ? [{ ...node, id: key }] : []; // the layout names steps by key
    });
    const links = this.links().filter((link) => chosen.has(link.source) && chosen.has(link.target));
    if (tasks.length > 0) this.move(place(tasks, links as unknown as GraphEdge[]));
  }

  /** replace makes the document say another definition, as one step of undo. */
  replace(definition: Definition): void {
    this.step(() => writeDefinition(this.doc, definition, LOCAL));
  }

  /** mergeIn makes the changes from base to mine here, as one step of undo. It returns the steps that stay because others changed them. */
  mergeIn(base: Keyed, mine: Keyed): GraphNode[] {
    const { result, kept } = merge(base, mine, this.keyed());
    this.step(() => writeKeyed(this.doc, result, LOCAL));
    return kept;
  }

  freeName(part: NamedPart, wanted: string): string {
    return freeName(wanted, (name) => this.roots[part].has(name));
  }

  destroy(): void {
    this.undo.destroy();
    this.doc.destroy();
  }
}

/** alignKeys puts a definition of another document under the keys that its steps have in this one. Steps are found by the ids they had in base. */
export function alignKeys(definition: Keyed, base: Keyed, document: Document): Keyed {
  return rekeyed(definition, (key) => document.keyOf(base.nodes.get(key)?.id ?? key) ?? key);
}

/** changesIds reports whether an event adds or removes steps, or changes the id of one. */
function changesIds(event: Y.YEvent<Y.AbstractType<unknown>>): boolean {
  if (!(event instanceof Y.YMapEvent)) return false;
  return event.path.length === 0 || (event.path.length === 1 && event.keysChanged.has("id"));
}

/** changed returns a plain value with the field at a path set; undefined removes it. */
function changed(value: unknown, path: readonly string[], to: unknown): unknown {
  const [field, ...inside] = path;
  if (field === undefined) return to;
  const fields = new Map(Object.entries(isRecord(value) ? value : {}));
  const next = changed(fields.get(field), inside, to);
  if (next === undefined) fields.delete(field);
  else fields.set(field, next);
  return Object.fromEntries(fields);
}
