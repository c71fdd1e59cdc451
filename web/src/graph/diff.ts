// What differs between two definitions: by step for people, by line for the
// details.
import { isRecord } from "../api/failure.ts";
import type { Definition } from "../workflows/queries.ts";
import { type GraphNode, same } from "./model.ts";

export interface Difference {
  id: string;
  name: string;
  kind: "added" | "removed" | "changed";
  /** Which fields differ; places do not count. */
  fields: string[];
}

const unseen = new Set(["position", "ui", "id"]);

/** differences is what happened between one definition and a later one. */
export function differences(before: Definition, after: Definition): Difference[] {
  const old = new Map((before.nodes ?? []).map((node) => [node.id, node]));
  const out: Difference[] = [];
  for (const node of after.nodes ?? []) {
    const was = old.get(node.id);
    old.delete(node.id);
    const entry = { id: node.id, name: node.name || node.id };
    if (!was) out.push({ ...entry, kind: "added", fields: [] });
    else {
      const fields = changedFields(was, node);
      if (fields.length > 0) out.push({ ...entry, kind: "changed", fields });
    }
  }
  for (const node of old.values()) out.push({ id: node.id, name: node.name || node.id, kind: "removed", fields: [] });
  for (const part of ["parameters", "inputs", "outputs"] as const) {
    const [was, is] = [(before[part] ?? {}) as Record<string, unknown>, (after[part] ?? {}) as Record<string, unknown>];
    const fields = [...new Set([...Object.keys(was), ...Object.keys(is)])].filter((key) => !same(was[key], is[key]));
    if (fields.length > 0) out.push({ id: part, name: part, kind: "changed", fields });
  }
  const lines = (definition: Definition) =>
    new Set(
      (definition.edges ?? []).map((edge) =>
        JSON.stringify([edge.source, edge.sourceHandle ?? null, edge.target, edge.targetHandle ?? null]),
      ),
    );
  const [was, is] = [lines(before), lines(after)];
  const moved = [...was].filter((line) => !is.has(line)).length + [...is].filter((line) => !was.has(line)).length;
  if (moved > 0) out.push({ id: "edges", name: "lines", kind: "changed", fields: [`${moved} of them`] });
  return out;
}

function changedFields(before: GraphNode, after: GraphNode): string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].filter((key) => !unseen.has(key) && !same(before[key], after[key])).toSorted();
}

/** sorted is a value with its keys in order: the same value is the same text. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sorted(value[key])]),
  );
}

export interface Line {
  sign: " " | "+" | "-";
  text: string;
}

const most = 4000;

/** lineDiff is two texts line by line, with a few equal lines around what differs. */
export function lineDiff(before: string, after: string, around = 2): Line[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const middle = common(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const equal = (text: string): Line => ({ sign: " ", text });
  const whole = [...a.slice(0, start).map(equal), ...middle, ...(end > 0 ? a.slice(-end).map(equal) : [])];
  const near = new Set<number>();
  for (const [at, line] of whole.entries())
    if (line.sign !== " ") for (let step = -around; step <= around; step++) near.add(at + step);
  return whole.filter((_, at) => near.has(at));
}

/** common finds the longest common lines; very long texts are shown as replaced. */
function common(a: string[], b: string[]): Line[] {
  const all = [...a.map((text): Line => ({ sign: "-", text })), ...b.map((text): Line => ({ sign: "+", text }))];
  if (a.length * b.length > most * most) return all;
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  const at = (row: number, column: number) => lengths[row * width + column] ?? 0;
  for (let row = a.length - 1; row >= 0; row--) {
    for (let column = b.length - 1; column >= 0; column--) {
      lengths[row * width + column] =
        a[row] === b[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const out: Line[] = [];
  let [row, column] = [0, 0];
  while (row < a.length || column < b.length) {
    if (row < a.length && column < b.length && a[row] === b[column]) {
      out.push({ sign: " ", text: a[row] ?? "" });
      row++;
      column++;
    } else if (row < a.length && (column === b.length || at(row + 1, column) >= at(row, column + 1))) {
      out.push({ sign: "-", text: a[row++] ?? "" });
    } else out.push({ sign: "+", text: b[column++] ?? "" });
  }
  return out;
}
