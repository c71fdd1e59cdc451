// A form from parameters: each is a JSON Schema, and a run without a default
// must be given its value.
import type { Schemas } from "../../api/client.ts";
import { asGiven, type Given } from "../../files/addresses.ts";
import type { Definition } from "../../workflows/queries.ts";

type Schema = Schemas["Parameter"] & Record<string, unknown>;

export type Kind = "text" | "number" | "integer" | "flag" | "choice" | "json";

export interface ParameterField {
  name: string;
  kind: Kind;
  label: string;
  hint: string | null;
  required: boolean;
  schema: Schema;
  /** Of a choice: what is shown for each value. */
  choices: { text: string; value: unknown }[];
  /** Seldom needed: shown on demand. */
  hidden: boolean;
}

export function fieldsOf(definition: Definition): ParameterField[] {
  return Object.entries(definition.parameters ?? {}).map(([name, raw]) => {
    const schema = raw as Schema;
    const limits = [
      schema.minimum !== undefined && `at least ${schema.minimum}`,
      schema.maximum !== undefined && `at most ${schema.maximum}`,
    ].filter(Boolean);
    const hint = [schema.description, limits.length > 0 ? limits.join(", ") : null].filter(Boolean).join(" · ");
    return {
      name,
      kind: kindOf(schema),
      label: schema.title || name,
      hint: hint || null,
      required: schema.default === undefined,
      schema,
      choices: (schema.enum ?? []).map((value) => ({ text: value === null ? "" : textOf(value), value })),
      hidden: schema["x-hidden"] === true,
    };
  });
}

function kindOf(schema: Schema): Kind {
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return "choice";
  const types = [schema.type].flat().filter((type) => type !== "null");
  if (types.length !== 1) return "json";
  const kinds: Record<string, Kind> = { string: "text", number: "number", integer: "integer", boolean: "flag" };
  return kinds[String(types[0])] ?? "json";
}

/** textOf is a value as text of its form control. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** startText is the initial text of a control: the given value, or the default. */
export function startText(field: ParameterField, given: unknown): string {
  const value = given !== undefined ? given : field.schema.default;
  if (value === null && field.schema.default === null) return "";
  if (value === undefined) return field.kind === "flag" ? "false" : "";
  return field.kind === "json" ? JSON.stringify(value) : textOf(value);
}

export type Reading = { value: unknown } | { error: string };

/** readField parses the text of a control. The value undefined stands for the default. */
export function readField(field: ParameterField, text: string): Reading {
  if (text === "" && (field.kind !== "text" || field.schema.default === null)) {
    return field.required ? { error: "Required." } : { value: undefined };
  }
  const reading = readText(field, text);
  return "error" in reading ? reading : checked(field, reading.value);
}

function readText(field: ParameterField, text: string): Reading {
  switch (field.kind) {
    case "text":
      return { value: text };
    case "flag":
      return { value: text === "true" };
    case "choice": {
      const found = field.choices.find((choice) => choice.text === text);
      return found ? { value: found.value } : { error: "Choose one of the listed values." };
    }
    case "integer":
    case "number": {
      const value = Number(text);
      if (!Number.isFinite(value) || text.trim() === "") return { error: "Not a number." };
      if (field.kind === "integer" && !Number.isInteger(value)) return { error: "Must be a whole number." };
      return { value };
    }
    case "json":
      try {
        return { value: JSON.parse(text) };
      } catch {
        return { error: 'Enter JSON, such as [1, 2] or {"a": 1}.' };
      }
  }
}

function checked({ schema, required }: ParameterField, value: unknown): Reading {
  if (typeof value === "number") {
    if (schema.minimum !== undefined && value < schema.minimum) return { error: `At least ${schema.minimum}.` };
    if (schema.maximum !== undefined && value > schema.maximum) return { error: `At most ${schema.maximum}.` };
  }
  if (typeof value === "string") {
    const least = Number(schema.minLength ?? 0);
    if (value.length < least) return { error: value === "" ? "Required." : `At least ${least} characters.` };
    if (schema.maxLength !== undefined && value.length > Number(schema.maxLength))
      return { error: `At most ${Number(schema.maxLength)} characters.` };
    if (typeof schema.pattern === "string" && !matches(schema.pattern, value))
      return { error: `Must match ${schema.pattern}.` };
  }
  if (Array.isArray(value) && required && value.length < Number(schema.minItems ?? 0))
    return { error: `At least ${Number(schema.minItems)} values.` };
  return { value };
}

// The server's patterns have another syntax. A pattern that JavaScript cannot
// parse is checked by the server only.
function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}

export interface Filled {
  parameters: Record<string, unknown>;
  inputs: Record<string, Given | Given[]>;
  errors: Record<string, string>;
}

/** fill reads all fields of the form. The server fills in defaults. */
export function fill(definition: Definition, texts: Record<string, string>, files: Record<string, string[]>): Filled {
  const out: Filled = { parameters: {}, inputs: {}, errors: {} };
  for (const field of fieldsOf(definition)) {
    const reading = readField(field, texts[field.name] ?? "");
    if ("error" in reading) out.errors[field.name] = reading.error;
    else if (reading.value !== undefined) out.parameters[field.name] = reading.value;
  }
  for (const [name, input] of Object.entries(definition.inputs ?? {})) {
    const keys = files[name] ?? [];
    const [only] = keys;
    if (only === undefined) {
      if (input.required !== false) out.errors[`inputs.${name}`] = "Choose a file.";
    } else out.inputs[name] = input.type === "files" ? keys.map(asGiven) : asGiven(only);
  }
  return out;
}
