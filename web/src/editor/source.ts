// The definition as text, in JSON or YAML. Loaded when somebody looks at it.
import { parse, stringify } from "yaml";
import { isRecord } from "../api/failure.ts";
import type { Definition } from "../definition/model.ts";

export type Format = "yaml" | "json";

export function write(definition: Definition, format: Format): string {
  if (format === "json") return `${JSON.stringify(definition, null, 2)}\n`;
  return stringify(definition, { lineWidth: 0, blockQuote: "literal" });
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
