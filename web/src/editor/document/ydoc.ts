// The definition as a Yjs document, and back. internal/domain/document does the
// same on the server, and both must agree.
import * as Y from "yjs";
import { isRecord } from "../../api/failure.ts";
import { textEdits } from "../../definition/diff.ts";
import { type Keyed, keyed } from "../../definition/merge.ts";
import { type Definition, type GraphEdge, type GraphNode, namedParts, same } from "../../definition/model.ts";

/** Link is an edge as the document keeps it, by its id. Its ends are keys of steps. */
export interface Link extends Record<string, unknown> {
  source: string;
  target: string;
  sourceHandle?: string | null;
  targetHandle?: string | null;
}

/** LOCAL is the origin of edits that people make in this tab. Undo takes them back. */
export const LOCAL = "local";

/** TextField is a field of a step that several people can type in. */
export type TextField = "command" | "text";

const isTextField = (field: string): field is TextField => field === "command" || field === "text";

/** Fields of a step whose members are changed one by one. */
const memberFields = new Set(["inputs", "outputs", "env", "resources", "retries", "scatter"]);

/** The field of a parameter or input that several people can type in. */
const help = "description";

export interface Roots {
  meta: Y.Map<unknown>;
  /** By a key that never changes. The field `id` is left out where it is the key. */
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

/**
 * idsOf returns the id of each step by its key. No two are the same: of steps that
 * want one id, the one that held it has it, and the others get a number. Where none
 * held it, the one whose key it is comes first, then the order of keys decides.
 */
export function idsOf(nodes: Y.Map<Y.Map<unknown>>, held?: ReadonlyMap<string, string>): Map<string, string> {
  const wanted = new Map<string, string>();
  for (const [key, map] of nodes.entries()) {
    const id = map instanceof Y.Map ? map.get("id") : undefined;
    wanted.set(key, typeof id === "string" && id !== "" ? id : key);
  }
  const ids = new Map<string, string>();
  const taken = new Set(wanted.values());
  if (taken.size === wanted.size) return wanted;
  taken.clear();
  const rank = (key: string, id: string) => (held?.get(key) === id ? 0 : key === id ? 1 : 2);
  const order = [...wanted].sort(([a, idA], [b, idB]) => rank(a, idA) - rank(b, idB) || (a < b ? -1 : 1));
  for (const [key, id] of order) {
    if (taken.has(id)) continue;
    ids.set(key, id);
    taken.add(id);
  }
  for (const [key, id] of order) {
    if (ids.has(key)) continue;
    const free = numbered(id, taken);
    ids.set(key, free);
    taken.add(free);
  }
  return ids;
}

/** numbered returns the wanted name, or the first free one of the form `trim_2`. */
function numbered(wanted: string, taken: { has: (name: string) => boolean }): string {
  if (!taken.has(wanted)) return wanted;
  for (let number = 2; ; number++) if (!taken.has(`${wanted}_${number}`)) return `${wanted}_${number}`;
}

/** keysFor returns the key of each step of a definition: the one that it has in the document, or a new one. */
export function keysFor(nodes: Y.Map<Y.Map<unknown>>, definition: Definition): (id: string) => string {
  const keys = new Map([...idsOf(nodes)].map(([key, id]) => [id, key]));
  const taken = new Set(nodes.keys());
  for (const { id } of definition.nodes ?? []) {
    if (keys.has(id)) continue;
    const key = numbered(id, taken);
    keys.set(id, key);
    taken.add(key);
  }
  return (id) => keys.get(id) ?? id;
}

/** writeDefinition makes the document say a definition, and leaves alone what it says already. */
export function writeDefinition(doc: Y.Doc, definition: Definition, origin: unknown): void {
  writeKeyed(doc, keyed(definition, keysFor(rootsOf(doc).nodes, definition)), origin);
}

/** writeKeyed does so for a definition whose steps are under their keys. */
export function writeKeyed(doc: Y.Doc, { nodes, edges, rest }: Keyed, origin: unknown): void {
  const roots = rootsOf(doc);
  const { version, parameters, inputs, outputs, ...extra } = rest;
  const fields = (value: unknown) => (isRecord(value) ? value : {});
  doc.transact(() => {
    setValues(roots.meta, { version });
    setValues(roots.extra, extra);
    setMembers(roots.parameters, fields(parameters));
    setMembers(roots.inputs, fields(inputs));
    setMembers(roots.outputs, fields(outputs));
    setValues(roots.edges as Y.Map<unknown>, Object.fromEntries(edges));
    for (const key of roots.nodes.keys()) if (!nodes.has(key)) roots.nodes.delete(key);
    for (const [key, node] of nodes) {
      const map = roots.nodes.get(key);
      if (map instanceof Y.Map) setFields(map, key, node);
      else roots.nodes.set(key, newStep(key, node));
    }
  }, origin);
}

/** newStep makes the map of a step that is not in the document yet, with a text to type in. */
export function newStep(key: string, node: Record<string, unknown>): Y.Map<unknown> {
  const fields = Object.entries(node).filter(
    ([field, value]) => value !== undefined && (field !== "id" || value !== key),
  );
  const map = new Map(fields.map(([field, value]) => [field, newValue(field, value)]));
  const text: TextField = node.type === "note" ? "text" : "command";
  if (!map.has(text)) map.set(text, new Y.Text());
  return new Y.Map(map);
}

function newValue(field: string, value: unknown): unknown {
  if (isTextField(field) && typeof value === "string") return new Y.Text(value);
  if (memberFields.has(field) && isRecord(value)) return new Y.Map(members(value, newMember));
  return field === "position" ? pair(value) : value;
}

function newMember(_name: string, value: unknown): unknown {
  return isRecord(value) ? new Y.Map(members(value, newDetail)) : value;
}

function newDetail(name: string, value: unknown): unknown {
  return name === help && typeof value === "string" ? new Y.Text(value) : value;
}

function members(
  value: Record<string, unknown>,
  make: (name: string, member: unknown) => unknown,
): [string, unknown][] {
  return Object.entries(value).flatMap(([name, member]) => (member === undefined ? [] : [[name, make(name, member)]]));
}

/** setFields makes a step's map hold these fields, and no others. */
function setFields(map: Y.Map<unknown>, key: string, node: Record<string, unknown>): void {
  const keepsId = map.has("id") || node.id !== key;
  for (const field of map.keys()) if (node[field] === undefined) setField(map, field, undefined);
  for (const [field, value] of Object.entries(node))
    if (value !== undefined && (field !== "id" || keepsId)) setField(map, field, value);
}

/** setField writes one field of a step, as little of it as has changed. */
export function setField(map: Y.Map<unknown>, field: string, value: unknown): void {
  if (value === undefined) {
    // Others may be changing what is in it.
    const there = map.get(field);
    if (isTextField(field) && there instanceof Y.Text) replaceText(there, "");
    else if (memberFields.has(field) && there instanceof Y.Map) setMembers(there, {});
    else if (map.has(field)) map.delete(field);
  } else if (isTextField(field) && typeof value === "string") {
    replaceText(textOf(map, field), value);
  } else if (memberFields.has(field) && isRecord(value)) {
    if (!same(map.get(field), value)) setMembers(mapOf(map, field), value);
  } else {
    const plain = field === "position" ? pair(value) : value;
    if (!same(map.get(field), plain)) map.set(field, plain);
  }
}

function setMembers(map: Y.Map<unknown>, want: Record<string, unknown>): void {
  for (const name of map.keys()) if (want[name] === undefined) map.delete(name);
  for (const [name, value] of Object.entries(want)) setMember(map, name, value);
}

/** setMember writes a port, parameter or other named value, as little of it as has changed; undefined removes it. */
export function setMember(map: Y.Map<unknown>, name: string, value: unknown): void {
  const there = map.get(name);
  if (value === undefined) {
    if (map.has(name)) map.delete(name);
  } else if (there instanceof Y.Map && isRecord(value)) {
    for (const key of there.keys()) if (value[key] === undefined) setDetail(there, key, undefined);
    for (const [key, detail] of Object.entries(value)) setDetail(there, key, detail);
  } else if (!same(there, value)) {
    map.set(name, newMember(name, value));
  }
}

function setDetail(map: Y.Map<unknown>, name: string, value: unknown): void {
  const there = map.get(name);
  if (name === help && typeof value === "string") replaceText(textOf(map, name), value);
  else if (value !== undefined) {
    if (!same(there, value)) map.set(name, value);
  } else if (there instanceof Y.Text) replaceText(there, "");
  else if (map.has(name)) map.delete(name);
}

/** memberOf reads a named value as the definition has it. */
export function memberOf(value: unknown): unknown {
  if (!(value instanceof Y.Map)) return value;
  const { [help]: text, ...rest } = value.toJSON();
  return text === undefined || text === "" ? rest : { ...rest, [help]: text };
}

/** membersOf reads all named values of a map. */
export function membersOf(map: Y.Map<unknown>): Record<string, unknown> {
  return Object.fromEntries([...map.entries()].map(([name, value]) => [name, memberOf(value)]));
}

function setValues(map: Y.Map<unknown>, want: Record<string, unknown>): void {
  for (const name of map.keys()) if (!Object.hasOwn(want, name) || want[name] === undefined) map.delete(name);
  for (const [name, value] of Object.entries(want)) {
    if (value !== undefined && !same(map.get(name), value)) map.set(name, value);
  }
}

/** textOf returns the shared text of a field, and makes it where there is none. */
export function textOf(map: Y.Map<unknown>, field: TextField | typeof help): Y.Text {
  const there = map.get(field);
  if (there instanceof Y.Text) return there;
  const said = typeof there === "string" ? there : "";
  return shared(map, field, said, new Y.Text(said));
}

/** mapOf does so for a map of members. */
function mapOf(map: Y.Map<unknown>, field: string): Y.Map<unknown> {
  const there = map.get(field);
  if (there instanceof Y.Map) return there;
  const said = isRecord(there) ? there : {};
  return shared(map, field, said, new Y.Map(members(said, newMember)));
}

/**
 * shared puts a type that is made of what a field says in place of that. It is always the
 * same type: people who make it apart from each other change one type, and lose nothing.
 */
function shared<T extends Y.Text | Y.Map<unknown>>(map: Y.Map<unknown>, field: string, said: unknown, made: T): T {
  const { doc } = map;
  if (!doc) throw new Error("the map is not in a document");
  const own = doc.clientID;
  const maker = makerOf(map, field, said);
  doc.transact(() => {
    // Two inserts of one client at one time are the same insert.
    if (Y.getState(doc.store, maker) === 0) doc.clientID = maker;
    try {
      map.set(field, made);
    } finally {
      doc.clientID = own;
    }
  });
  return made;
}

/** makerOf numbers the client that makes a type by all that the type is made of. */
function makerOf(map: Y.Map<unknown>, field: string, said: unknown): number {
  const name = (id: Y.ID | undefined) => (id ? `${id.client}.${id.clock}` : "");
  const from = [name(map._item?.id), field, name(map._map.get(field)?.lastId), JSON.stringify(said)].join(" ");
  let hash = 0x811c9dc5; // FNV-1a
  for (let at = 0; at < from.length; at++) hash = Math.imul(hash ^ from.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** isShared reports whether an item is a type that shared makes. Others may be changing it, so undo must not delete it. */
export function isShared({ nodes, parameters, inputs }: Roots, item: Y.Item): boolean {
  const { parent, parentSub, content } = item;
  if (parentSub === null || !(content instanceof Y.ContentType) || !(parent instanceof Y.AbstractType)) return false;
  const above = parent._item?.parent;
  if (above === nodes) return isTextField(parentSub) || memberFields.has(parentSub);
  return parentSub === help && (above === parameters || above === inputs);
}

/** replaceText changes the words that differ, so that others' carets and edits around them stay. */
export function replaceText(text: Y.Text, want: string): void {
  for (const { at, remove, insert } of textEdits(text.toString(), want).toReversed()) {
    if (remove > 0) text.delete(at, remove);
    if (insert !== "") text.insert(at, insert);
  }
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

/** nodeOf reads a step of the document as the definition has it. */
export function nodeOf(map: Y.Map<unknown>, id: string): GraphNode {
  const fields: Record<string, unknown> = {};
  for (const [field, value] of map.entries()) {
    const inner = value instanceof Y.AbstractType ? value.toJSON() : value;
    const said = value instanceof Y.Map && memberFields.has(field) ? membersOf(value) : inner;
    if (!isEmpty(field, said)) fields[field] = said;
  }
  const position = positionOf(fields.position);
  return { type: "task", ...fields, id, ...(position && { position }) } as GraphNode;
}

/** isEmpty reports whether a field only has a place for what people will write. */
function isEmpty(field: string, value: unknown): boolean {
  if (isTextField(field)) return value === "";
  return memberFields.has(field) && isRecord(value) && Object.keys(value).length === 0;
}

/** linksOf lists the edges of the document by id, without what is none. */
export function linksOf(roots: Roots): [string, Link][] {
  return [...roots.edges.entries()].filter(([, link]) => isRecord(link));
}

/** keyedOf reads the document with its steps under their keys. Edges that lead nowhere are left out. */
export function keyedOf(doc: Y.Doc, held?: ReadonlyMap<string, string>): Keyed {
  const roots = rootsOf(doc);
  const ids = idsOf(roots.nodes, held);
  const nodes = new Map<string, GraphNode>();
  for (const [key, map] of roots.nodes.entries()) {
    if (map instanceof Y.Map) nodes.set(key, nodeOf(map, ids.get(key) ?? key));
  }
  const edges = new Map(linksOf(roots).filter(([, link]) => nodes.has(link.source) && nodes.has(link.target)));
  const named = Object.fromEntries(namedParts.map((name) => [name, membersOf(roots[name])]));
  return { nodes, edges: edges as Keyed["edges"], rest: { ...roots.extra.toJSON(), version: 1, ...named } };
}

/** definitionOf reads the definition that the document says, in the order of ids. */
export function definitionOf(doc: Y.Doc, held?: ReadonlyMap<string, string>): Definition {
  const { nodes, edges, rest } = keyedOf(doc, held);
  const idOf = (key: string) => nodes.get(key)?.id ?? key;
  const list = [...edges].map(
    ([id, edge]) => ({ id, ...edge, source: idOf(edge.source), target: idOf(edge.target) }) as GraphEdge,
  );
  return { ...rest, nodes: [...nodes.values()].sort(byId), edges: list.sort(byId) } as Definition;
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}
