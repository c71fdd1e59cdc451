// The parameters of a sweep that take several values.
import { type Filled, type ParameterField, readField } from "./form.ts";

export const mostRuns = 100;

export interface Varied {
  values: Record<string, unknown[]>;
  /** How many runs that makes. */
  runs: number;
  errors: Record<string, string>;
}

/** readVaried reads the values of each varied parameter, separated by line breaks or commas. */
export function readVaried(fields: ParameterField[], texts: Record<string, string>): Varied {
  const out: Varied = { values: {}, runs: 1, errors: {} };
  for (const field of fields) {
    const text = texts[field.name];
    if (text === undefined) continue;
    const parts = text
      .split(/[\n,]/)
      .map((part) => part.trim())
      .filter(Boolean);
    const values: unknown[] = [];
    for (const part of parts) {
      const reading = readField(field, part);
      if ("error" in reading) out.errors[field.name] ??= `${part}: ${reading.error}`;
      else values.push(reading.value);
    }
    if (parts.length === 0) out.errors[field.name] = "Enter at least one value.";
    out.values[field.name] = values;
    out.runs *= Math.max(1, values.length);
  }
  return out;
}

/** withoutVaried is a form without the parameters that the sweep varies. */
export function withoutVaried(filled: Filled, varying: Record<string, string>): Filled {
  const rest = <T>(values: Record<string, T>) =>
    Object.fromEntries(Object.entries(values).filter(([name]) => varying[name] === undefined));
  return { ...filled, parameters: rest(filled.parameters), errors: rest(filled.errors) };
}
