// The runs of a sweep as a table.
import type { Schemas } from "../../api/client.ts";

export type Sweep = Schemas["Sweep"];
export type SweepRun = Schemas["SweepRun"];

export type Column =
  | { kind: "number" | "status" | "took" | "credits" }
  | { kind: "parameter" | "output"; name: string };

/** cell is the value of a run in a column, for display and sorting. */
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
