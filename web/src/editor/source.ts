// The definition as text, in JSON or YAML. Loaded when somebody looks at it.
import { parse, stringify } from "yaml";
import { isRecord } from "../api/failure.ts";
import type { Definition, GraphNode } from "../definition/model.ts";

export type Format = "yaml" | "json";

/** write writes a definition for people: steps as they are on the canvas from left to right, what a step is before what it does. */
export function write(definition: Definition, format: Format): string {
  return textOf(inReadingOrder(definition), format);
}

/** writeFile writes a workflow as the text of a file: what people say of it, and its definition. */
export function writeFile(
  workflow: { name: string; license?: string },
  definition: Definition,
  format: Format,
): string {
  return textOf({ ...workflow, definition: inReadingOrder(definition) }, format);
}

function textOf(value: unknown, format: Format): string {
  if (format === "json") return `${JSON.stringify(value, null, 2)}\n`;
  return stringify(value, { lineWidth: 0, blockQuote: "literal" });
}

const first = ["id", "name", "type", "command", "interpreter", "image", "inputs", "outputs"];
const last = ["position"];

/** inReadingOrder sorts the steps of a definition and the fields of each. */
export function inReadingOrder(definition: Definition): Definition {
  if (!definition.nodes) return definition;
  const at = ({ position }: GraphNode) => ({ x: position?.x ?? 0, y: position?.y ?? 0 });
  const nodes = definition.nodes.toSorted((a, b) => at(a).x - at(b).x || at(a).y - at(b).y);
  return { ...definition, nodes: nodes.map(inFieldOrder) };
}

function inFieldOrder(node: GraphNode): GraphNode {
  const place = (field: string) =>
    first.includes(field) ? first.indexOf(field) : first.length + (last.includes(field) ? 1 : 0);
  const fields = Object.entries(node).toSorted(([a], [b]) => place(a) - place(b));
  return Object.fromEntries(fields) as GraphNode;
}

/** read reads a definition, or a workflow that holds one, from text in either format. */
export function read(text: string): Definition {
  let value: unknown;
  try {
    // JSON is YAML too, but its own reader says better what is wrong with it.
    value = text.trimStart().startsWith("{") ? JSON.parse(text) : parse(text, { maxAliasCount: 0 });
  } catch (error) {
    throw new Error(error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error));
  }
  const definition = isRecord(value) && isRecord(value.definition) ? value.definition : value;
  if (!isRecord(definition)) throw new Error("no definition found");
  if (definition.version !== 1) throw new Error("version: 1 is missing");
  return definition as Definition;
}
