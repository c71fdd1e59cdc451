// Three-way merges: what two people made of one definition, in one.
import { isRecord } from "../api/failure.ts";
import { textEdits } from "./diff.ts";
import { type Definition, type GraphEdge, type GraphNode, namedParts, same } from "./model.ts";

/**
 * mergeText makes the changes of both in one text: it has everything that either
 * inserted, and nothing that either removed. What both inserted alike is there once.
 */
export function mergeText(base: string, mine: string, theirs: string): string {
  if (mine === base || mine === theirs) return theirs;
  if (theirs === base) return mine;
  const removed = new Uint8Array(base.length);
  const inserts = [textEdits(base, theirs), textEdits(base, mine)].map((edits) => {
    for (const { at, remove } of edits) removed.fill(1, at, at + remove);
    return new Map(edits.map(({ at, insert }) => [at, insert]));
  });
  const parts: string[] = [];
  let kept = 0;
  for (let at = 0; at <= base.length; at++) {
    const [one = "", other = ""] = inserts.map((each) => each.get(at) ?? "");
    if (one !== "" || other !== "" || removed[at] === 1 || at === base.length) {
      parts.push(base.slice(kept, at), one, one === other ? "" : other);
      kept = removed[at] === 1 ? at + 1 : at;
    }
  }
  return parts.join("");
}

/** Texts that several people write in, and that are merged word by word. */
const texts = new Set(["command", "text", "description"]);

type Fields = Record<string, unknown>;

/** mergeFields takes every field that mine changed from mine, and all others from theirs. A change wins over a removal. */
function mergeFields(base: Fields, mine: Fields, theirs: Fields): Fields {
  const [was, own, other] = [base, mine, theirs].map((fields) => new Map<string, unknown>(Object.entries(fields)));
  return Object.fromEntries(mergeMaps(was, own, other, mergeValue));
}

function mergeMaps<T>(
  base: ReadonlyMap<string, T> = new Map(),
  mine: ReadonlyMap<string, T> = new Map(),
  theirs: ReadonlyMap<string, T> = new Map(),
  both: (key: string, base: T | undefined, mine: T, theirs: T) => T = (_key, _base, own) => own,
): Map<string, T> {
  const merged = new Map(theirs);
  for (const key of new Set([...base.keys(), ...mine.keys()])) {
    const [was, own, other] = [base.get(key), mine.get(key), theirs.get(key)];
    if (same(was, own)) continue;
    if (own !== undefined) merged.set(key, other === undefined ? own : both(key, was, own, other));
    else if (same(was, other)) merged.delete(key);
  }
  return merged;
}

function mergeValue(key: string, base: unknown, mine: unknown, theirs: unknown): unknown {
  if (isRecord(mine) && isRecord(theirs)) return mergeFields(isRecord(base) ? base : {}, mine, theirs);
  if (texts.has(key) && typeof mine === "string" && typeof theirs === "string")
    return mergeText(typeof base === "string" ? base : "", mine, theirs);
  return mine;
}

/** KeyedEdge is an edge between the steps with two keys. */
export type KeyedEdge = Record<string, unknown> &
  Pick<GraphEdge, "source" | "target" | "sourceHandle" | "targetHandle">;

/**
 * Keyed is a definition whose steps are under keys that never change, as the live
 * document has them. A step's id is one of its fields, and edges name steps by key.
 */
export interface Keyed {
  nodes: Map<string, GraphNode>;
  edges: Map<string, KeyedEdge>;
  /** Everything else. */
  rest: Fields;
}

/** keyed puts the steps of a definition under their keys; keyOf knows the key of each id. */
export function keyed(definition: Definition, keyOf: (id: string) => string): Keyed {
  const { nodes = [], edges = [], ...rest } = definition;
  return {
    nodes: new Map(nodes.map((node) => [keyOf(node.id), node])),
    edges: new Map(
      edges.map(({ id, ...edge }) => [id, { ...edge, source: keyOf(edge.source), target: keyOf(edge.target) }]),
    ),
    rest,
  };
}

/** rekeyed puts the steps of a keyed definition under other keys. */
export function rekeyed({ nodes, edges, rest }: Keyed, keyOf: (key: string) => string): Keyed {
  return {
    nodes: new Map([...nodes].map(([key, node]) => [keyOf(key), node])),
    edges: new Map(
      [...edges].map(([id, edge]) => [id, { ...edge, source: keyOf(edge.source), target: keyOf(edge.target) }]),
    ),
    rest,
  };
}

export interface Merged {
  result: Keyed;
  /** Steps that mine removed and that stay, because theirs changed or connected them. */
  kept: GraphNode[];
}

/** merge makes the changes from base to mine in theirs. */
export function merge(base: Keyed, mine: Keyed, theirs: Keyed): Merged {
  const nodes = mergeMaps(
    base.nodes,
    mine.nodes,
    theirs.nodes,
    (_key, was, own, other) => mergeFields(was ?? {}, own, other) as GraphNode,
  );
  const connected = new Set(
    [...theirs.edges].flatMap(([id, edge]) => (base.edges.has(id) ? [] : [edge.source, edge.target])),
  );
  const kept: GraphNode[] = [];
  for (const [key, node] of theirs.nodes) {
    if (!base.nodes.has(key) || mine.nodes.has(key)) continue;
    if (!nodes.has(key) && !connected.has(key)) continue;
    nodes.set(key, node);
    kept.push(node);
  }
  const edges = mergeMaps(base.edges, mine.edges, theirs.edges);
  const blank = Object.fromEntries(namedParts.map((part) => [part, {}]));
  const rest = mergeFields({ ...blank, ...base.rest }, { ...blank, ...mine.rest }, { ...blank, ...theirs.rest });
  return { result: { nodes, edges, rest }, kept };
}

/**
 * renamedIds finds the steps of a text that are others of base under a new id: a step
 * that is the same but for its id, or stands in the same place.
 */
export function renamedIds(base: Definition, mine: Definition): Map<string, string> {
  const [before, after] = [base.nodes ?? [], mine.nodes ?? []];
  const ids = new Set(after.map((node) => node.id));
  const known = new Set(before.map((node) => node.id));
  const gone = before.filter((node) => !ids.has(node.id));
  const found = new Map<string, string>();
  const take = (matches: (old: GraphNode, node: GraphNode) => boolean) => {
    for (const node of after) {
      if (known.has(node.id) || found.has(node.id)) continue;
      const at = gone.findIndex((old) => matches(old, node));
      if (at >= 0) found.set(node.id, gone.splice(at, 1)[0]?.id ?? "");
    }
  };
  take((old, node) => same({ ...old, id: "" }, { ...node, id: "" }));
  take((old, node) => old.type === node.type && old.position !== undefined && same(old.position, node.position));
  return found;
}
