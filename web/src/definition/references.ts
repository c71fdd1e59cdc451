// Everything in a definition that refers to something else: edges, ports,
// declared outputs, expressions, and variables in commands. Renaming goes by this one
// list. The server, which can parse expressions, finds references to what is not there.
import { type Definition, type Edit, type GraphEdge, type GraphNode, groupBy } from "./model.ts";
import { portsOf } from "./ports.ts";

/** Name is something that can be referred to. A step is named by its id. */
export type Name =
  | { kind: "step" | "input" | "parameter"; name: string }
  /** What a step makes, and what it takes. */
  | { kind: "output" | "port"; node: string; name: string };

export interface Reference {
  /** The field that has the reference, as edits name it: `nodes.trim.when`. */
  path: string;
  /** The step that has the field; null for the definition itself. */
  node: string | null;
  /**
   * How the field refers: a plain name, a CEL expression, or a script. Only a plain name
   * is certain: the server reads expressions, and nobody reads scripts.
   */
  as: "name" | "expression" | "script";
  to: Name;
  /** The text of the field, and where the name is in it. */
  text: string;
  start: number;
  end: number;
}

/** referencesIn lists every reference of a definition. */
export function referencesIn(definition: Definition): Reference[] {
  const into = groupBy(definition.edges ?? [], (edge) => edge.target);
  return [
    ...(definition.edges ?? []).flatMap(edgeReferences),
    ...(definition.nodes ?? []).flatMap((node) => stepReferences(node, into.get(node.id) ?? [])),
    ...Object.entries(definition.outputs ?? {}).flatMap(([name, { from }]) => outputReferences(name, from)),
  ];
}

function edgeReferences({ id, source, sourceHandle, target, targetHandle }: GraphEdge): Reference[] {
  const at = (field: string, text: string, to: Name): Reference => ({
    ...whole(`edges.${id}.${field}`, text, to),
    node: target,
  });
  return [
    at("source", source, { kind: "step", name: source }),
    at("target", target, { kind: "step", name: target }),
    ...(sourceHandle ? [at("sourceHandle", sourceHandle, { kind: "output", node: source, name: sourceHandle })] : []),
    ...(targetHandle ? [at("targetHandle", targetHandle, { kind: "port", node: target, name: targetHandle })] : []),
  ];
}

function whole(path: string, text: string, to: Name): Reference {
  return { path, node: null, as: "name", to, text, start: 0, end: text.length };
}

function outputReferences(name: string, from: string | undefined): Reference[] {
  const [, node, port] = /^(\w+)\.(\w+)$/.exec(from ?? "") ?? [];
  if (!from || !node || !port) return [];
  const field = whole(`outputs.${name}.from`, from, { kind: "step", name: node });
  return [
    { ...field, end: node.length },
    { ...field, to: { kind: "output", node, name: port }, start: node.length + 1 },
  ];
}

function stepReferences(node: GraphNode, edges: readonly GraphEdge[]): Reference[] {
  const at = `nodes.${node.id}`;
  const ports = new Set(portsOf(node, edges).inputs.map((port) => port.name));
  const found: Reference[] = [];
  for (const [port, { from }] of Object.entries(node.inputs ?? {})) {
    const name = /^inputs\.(\w+)$/.exec(from ?? "")?.[1];
    if (from && name)
      found.push({ ...whole(`${at}.inputs.${port}.from`, from, { kind: "input", name }), start: "inputs.".length });
  }
  if (node.when) found.push(...expressionReferences(`${at}.when`, node.when));
  if (node.scatter?.over) found.push(...expressionReferences(`${at}.scatter.over`, node.scatter.over));
  if (node.command) found.push(...scriptReferences(`${at}.command`, node.command, node.id, ports));
  for (const [name, text] of Object.entries(node.env ?? {}))
    found.push(...scriptReferences(`${at}.env.${name}`, text, node.id, ports));
  return found.map((each) => ({ ...each, node: node.id }));
}

const name = "\\s*\\.\\s*`?([A-Za-z_]\\w*)`?";
// Strings and comments come first, so that names in them are passed over.
const inExpression = new RegExp(
  `"(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*'|//[^\\n]*|(?<![\\w.])(?:(inputs|params)${name}|nodes${name}(?:\\s*\\.\\s*outputs${name})?)`,
  "dg",
);

/** expressionReferences lists what an expression names, as far as that can be told without a parser. */
export function expressionReferences(path: string, text: string): Reference[] {
  const found: Reference[] = [];
  const add = (to: Name, place: [number, number] | undefined) => {
    if (place) found.push({ path, node: null, as: "expression", to, text, start: place[0], end: place[1] });
  };
  for (const match of text.matchAll(inExpression)) {
    const [, root, member, step, output] = match;
    const places = match.indices ?? [];
    if (root && member) add({ kind: root === "inputs" ? "input" : "parameter", name: member }, places[2]);
    if (step) add({ kind: "step", name: step }, places[3]);
    if (step && output) add({ kind: "output", node: step, name: output }, places[4]);
  }
  return found;
}

const variable = /\b(INPUT|PARAM)_([A-Za-z_]\w*)/dg;

/** scriptReferences lists the variables of a script that carry inputs and parameters. INPUT_x_LIST belongs to the port x. */
function scriptReferences(path: string, text: string, node: string, ports: ReadonlySet<string>): Reference[] {
  return [...text.matchAll(variable)].map((match) => {
    const [, kind, said = ""] = match;
    const start = match.indices?.[2]?.[0] ?? 0;
    const own = kind === "INPUT" && !ports.has(said) ? said.replace(/_LIST$/, "") : said;
    const to: Name = kind === "INPUT" ? { kind: "port", node, name: own } : { kind: "parameter", name: own };
    return { path, node, as: "script", to, text, start, end: start + own.length };
  });
}

export function sameName(a: Name, b: Name): boolean {
  return a.kind === b.kind && a.name === b.name && ("node" in a ? a.node : "") === ("node" in b ? b.node : "");
}

/** referencesTo lists what refers to a name. */
export function referencesTo(definition: Definition, what: Name): Reference[] {
  return referencesIn(definition).filter((each) => sameName(each.to, what));
}

/** renamed lists the edits that put another name in the place of each reference. */
export function renamed(references: readonly Reference[], to: string): Edit[] {
  const byPath = groupBy(references, (each) => each.path);
  return [...byPath].map(([path, places]) => {
    let value = places[0]?.text ?? "";
    for (const { start, end } of places.toSorted((a, b) => b.start - a.start))
      value = value.slice(0, start) + to + value.slice(end);
    return { path, value };
  });
}
