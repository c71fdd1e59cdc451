// A sweep: which values vary, and its runs as a table.
import type { Schemas } from "../api/client.ts";
import { type Filled, type ParameterField, readField } from "./form.ts";

export type Sweep = Schemas["Sweep"];
export type SweepRun = Schemas["SweepRun"];

export const mostRuns = 100;

export interface Varied {
  values: Record<string, unknown[]>;
  /** How many runs that makes. */
  runs: number;
  errors: Record<string, string>;
}

/** readVaried reads the values of each parameter that varies: one a line, or with commas between them. */
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
    if (parts.length === 0) out.errors[field.name] = "Give at least one value.";
    out.values[field.name] = values;
    out.runs *= Math.max(1, values.length);
  }
  return out;
}

export type Column =
  | { kind: "number" | "status" | "took" | "credits" }
  | { kind: "parameter" | "output"; name: string };

/** cell is what a table shows of a run, and sorts by. */
export function cell({ run, parameters, outputs }: SweepRun, column: Column): string | number | null {
  switch (column.kind) {
    case "number":
      return run.number;
    case "status":
      return run.status;
    case "took":
      return run.durationMs;
    case "credits":
      return run.creditsUsed;
    case "parameter": {
      const value = parameters[column.name];
      if (value === undefined) return null;
      return typeof value === "number" || typeof value === "string" ? value : JSON.stringify(value);
    }
    case "output": {
      const output = outputs.find((each) => each.port === column.name);
      if (!output) return null;
      const value = output.value ?? output.name;
      return value !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
    }
  }
}

/** sorted orders runs by a column; what is missing comes last either way. */
export function sorted(runs: SweepRun[], column: Column, down: boolean): SweepRun[] {
  return runs.toSorted((first, second) => {
    const [a, b] = [cell(first, column), cell(second, column)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    const order =
      typeof a === "number" && typeof b === "number"
        ? a - b
        : String(a).localeCompare(String(b), "en", { numeric: true });
    return down ? -order : order;
  });
}

/** withoutVaried is a form whose varying parameters are left to the sweep. */
export function withoutVaried(filled: Filled, varying: Record<string, string>): Filled {
  const rest = <T>(values: Record<string, T>) =>
    Object.fromEntries(Object.entries(values).filter(([name]) => varying[name] === undefined));
  return { ...filled, parameters: rest(filled.parameters), errors: rest(filled.errors) };
}
