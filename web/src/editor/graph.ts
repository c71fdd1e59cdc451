// The definition graph as a shared document, and back. The shape follows the
// definition, so that either becomes the other by a plain walk; the server
// does the same in internal/collab/drawing.go.
import * as Y from "yjs";
import { isRecord } from "../api/failure.ts";
import { type GraphEdge, type GraphNode, same } from "../graph/model.ts";
import type { Definition } from "../workflows/queries.ts";

/** What an edge joins; the document keeps edges as plain values by their id. */
export interface Link extends Record<string, unknown> {
  source: string;
  target: string;
  sourceHandle?: string | null;
  targetHandle?: string | null;
}

/** LOCAL is the origin of every edit made in this tab: what undo takes back. */
export const LOCAL = "local";

const namedRoots = ["parameters", "inputs", "outputs"] as const;
export type NamedRoot = (typeof namedRoots)[number];

const mapFields = new Set(["inputs", "outputs", "env"]);

export interface Roots {
  meta: Y.Map<unknown>;
  nodes: Y.Map<Y.Map<unknown>>;
  edges: Y.Map<Link>;
  parameters: Y.Map<unknown>;
  inputs: Y.Map<unknown>;
  outputs: Y.Map<unknown>;
  extra: Y.Map<unknown>;
}

export function rootsOf(doc: Y.Doc): Roots {
  return {
    meta: doc.getMap("meta"),
    nodes: doc.getMap("nodes"),
    edges: doc.getMap("edges"),
    parameters: doc.getMap("parameters"),
    inputs: doc.getMap("inputs"),
    outputs: doc.getMap("outputs"),
    extra: doc.getMap("extra"),
  };
}

/** draw makes the document say a definition, and touches nothing that it says already. */
export function draw(doc: Y.Doc, definition: Definition, origin: unknown): void {
  const roots = rootsOf(doc);
  const { version, nodes = [], edges = [], parameters, inputs, outputs, ...extra } = definition;
  doc.transact(() => {
    setValues(roots.meta, { version });
    setValues(roots.extra, extra);
    setValues(roots.parameters, parameters ?? {});
    setValues(roots.inputs, inputs ?? {});
    setValues(roots.outputs, outputs ?? {});
    setValues(roots.edges as Y.Map<unknown>, Object.fromEntries(edges.map(({ id, ...link }) => [id, link])));
    const wanted = new Map(nodes.map((node) => [node.id, node]));
    for (const id of roots.nodes.keys()) if (!wanted.has(id)) roots.nodes.delete(id);
    for (const [id, node] of wanted) {
      let map = roots.nodes.get(id);
      if (!(map instanceof Y.Map)) {
        map = new Y.Map();
        roots.nodes.set(id, map);
      }
      setFields(map, node);
    }
  }, origin);
}

/** setFields makes a node's map hold these fields, and no others. */
export function setFields(map: Y.Map<unknown>, node: Record<string, unknown>): void {
  for (const key of map.keys()) if (key === "id" || node[key] === undefined) map.delete(key);
  for (const [key, value] of Object.entries(node)) if (key !== "id" && value !== undefined) setField(map, key, value);
}

/** setField writes one field of a node, as little of it as has changed. */
export function setField(map: Y.Map<unknown>, key: string, value: unknown): void {
  if (value === undefined) {
    if (map.has(key)) map.delete(key);
  } else if (key === "command" && typeof value === "string") {
    const text = map.get(key);
    if (text instanceof Y.Text) replaceText(text, value);
    else map.set(key, new Y.Text(value));
  } else if (mapFields.has(key) && isRecord(value)) {
    let inner = map.get(key);
    if (!(inner instanceof Y.Map)) {
      inner = new Y.Map();
      map.set(key, inner);
    }
    setValues(inner as Y.Map<unknown>, value);
  } else {
    const plain = key === "position" ? pair(value) : value;
    if (!same(map.get(key), plain)) map.set(key, plain);
  }
}

function setValues(map: Y.Map<unknown>, want: Record<string, unknown>): void {
  for (const key of map.keys()) if (want[key] === undefined) map.delete(key);
  for (const [key, value] of Object.entries(want)) {
    if (value !== undefined && !same(map.get(key), value)) map.set(key, value);
  }
}

/** replaceText changes the middle that differs, so that others' cursors and edits around it stay. */
export function replaceText(text: Y.Text, want: string): void {
  const have = text.toString();
  if (have === want) return;
  let start = 0;
  while (start < have.length && start < want.length && have[start] === want[start]) start++;
  let end = 0;
  while (
    end < have.length - start &&
    end < want.length - start &&
    have[have.length - 1 - end] === want[want.length - 1 - end]
  )
    end++;
  if (have.length - end > start) text.delete(start, have.length - end - start);
  if (want.length - end > start) text.insert(start, want.slice(start, want.length - end));
}

// A position is one value, so that dragging leaves one trace.
function pair(value: unknown): unknown {
  if (isRecord(value) && typeof value.x === "number" && typeof value.y === "number") return [value.x, value.y];
  return value;
}

export function positionOf(value: unknown): { x: number; y: number } | undefined {
  if (!Array.isArray(value) || typeof value[0] !== "number" || typeof value[1] !== "number") return undefined;
  return { x: value[0], y: value[1] };
}

/** nodeOf is a node of the document as the definition has it. */
export function nodeOf(id: string, map: Y.Map<unknown>): GraphNode {
  const fields = map.toJSON();
  const position = positionOf(fields.position);
  return { type: "task", ...fields, id, ...(position && { position }) } as GraphNode;
}

/** definitionOf is the definition that the document says, by id; ends that lead nowhere are left out. */
export function definitionOf(doc: Y.Doc): Definition {
  const roots = rootsOf(doc);
  const nodes = [...roots.nodes.entries()]
    .filter(([, map]) => map instanceof Y.Map)
    .map(([id, map]) => nodeOf(id, map))
    .toSorted(byId);
  const edges = [...roots.edges.entries()]
    .filter(([, link]) => roots.nodes.has(link.source) && roots.nodes.has(link.target))
    .map(([id, link]) => ({ id, ...link }) as GraphEdge)
    .toSorted(byId);
  const named = Object.fromEntries(namedRoots.map((name) => [name, roots[name].toJSON()]));
  return { ...roots.extra.toJSON(), version: 1, ...named, nodes, edges } as Definition;
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}

const letters = "abcdefghijklmnopqrstuvwxyz0123456789";

/** newId is a name nobody else will make at the same moment: a letter, then chance. */
export function newId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  return `${prefix}_${[...bytes].map((byte) => letters[byte % letters.length]).join("")}`;
}

export const namePattern = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

/** freeName is the wanted name, with a number behind it where it is taken. */
export function freeName(wanted: string, taken: (name: string) => boolean): string {
  const base =
    wanted
      .replaceAll(/[^A-Za-z0-9_]+/g, "_")
      .replace(/^(?=[0-9])/, "_")
      .slice(0, 58) || "value";
  if (!taken(base)) return base;
  for (let number = 2; ; number++) if (!taken(`${base}${number}`)) return `${base}${number}`;
}

/** stepsBefore are the steps that a step waits for, near and far, in a fixed order. */
export function stepsBefore(id: string, edges: readonly Pick<GraphEdge, "source" | "target">[]): string[] {
  const into = new Map<string, string[]>();
  for (const { source, target } of edges) into.set(target, [...(into.get(target) ?? []), source]);
  const found = new Set<string>([id]);
  for (const each of found) for (const source of into.get(each) ?? []) found.add(source);
  found.delete(id);
  return [...found].sort();
}
