// Actions on several runs.
import { csv } from "../../ui/csv.ts";
import { firstLine } from "../errorMessage.ts";
import type { RunRow } from "../queries.ts";

/** runsCsv is runs as a table. */
export function runsCsv(rows: RunRow[]): string {
  const head = [
    "id",
    "workflow",
    "number",
    "name",
    "tags",
    "status",
    "started by",
    "created",
    "seconds",
    "credits",
    "error",
  ];
  return csv([
    head,
    ...rows.map((run) => [
      run.id,
      run.workflowName,
      String(run.number),
      run.name ?? "",
      run.tags.join(" "),
      run.status,
      run.startedBy.name,
      run.createdAt,
      run.durationMs === null ? "" : String(run.durationMs / 1000),
      String(run.creditsUsed),
      firstLine(run.errorMessage ?? "")[0],
    ]),
  ]);
}

/** outcome counts successes and failures of several requests, with the first error. */
export function outcome(results: PromiseSettledResult<unknown>[]): {
  done: number;
  failed: number;
  why: string | null;
} {
  const failures = results.filter((result) => result.status === "rejected");
  const first = failures[0]?.reason;
  return {
    done: results.length - failures.length,
    failed: failures.length,
    why: first === undefined ? null : first instanceof Error ? first.message : String(first),
  };
}

/** inBatches calls act for every item, four at a time, and returns all results. */
export async function inBatches<T>(
  list: T[],
  act: (item: T) => Promise<unknown>,
): Promise<PromiseSettledResult<unknown>[]> {
  const results: PromiseSettledResult<unknown>[] = [];
  for (let i = 0; i < list.length; i += 4) results.push(...(await Promise.allSettled(list.slice(i, i + 4).map(act))));
  return results;
}
