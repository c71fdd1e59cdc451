// Which steps wait for which others, as the lines between them say.
import { groupBy } from "./model.ts";

/** Ends is what a line begins and ends at: steps by id, or by key. */
type Ends = { source: string; target: string };

/** stepsBefore is the steps that a step waits for, near and far. */
export function stepsBefore(step: string, lines: Iterable<Ends>): Set<string> {
  const into = groupBy(lines, (line) => line.target);
  return reached(step, (each) => into.get(each)?.map((line) => line.source) ?? []);
}

/** stepsAfter is the steps that wait for a step, near and far. */
export function stepsAfter(step: string, lines: Iterable<Ends>): Set<string> {
  const from = groupBy(lines, (line) => line.source);
  return reached(step, (each) => from.get(each)?.map((line) => line.target) ?? []);
}

function reached(step: string, next: (step: string) => string[]): Set<string> {
  const found = new Set([step]);
  for (const each of found) for (const other of next(each)) found.add(other);
  found.delete(step);
  return found;
}
