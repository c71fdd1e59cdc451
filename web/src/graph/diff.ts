// The differences between two definitions: by step for people, by line for details.
import { isRecord } from "../api/failure.ts";
import { hunks } from "../definition/diff.ts";
import { type Definition, type GraphNode, same } from "../definition/model.ts";

export interface Difference {
  id: string;
  name: string;
  kind: "added" | "removed" | "changed";
  /** Which fields differ; places do not count. */
  fields: string[];
}

const unseen = new Set(["position", "ui", "id"]);

/** differences lists what changed from one definition to a later one. */
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
  for (const part of ["parameters", "inputs", "outputs", "source"] as const) {
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

/** sameLayout reports whether the steps that two definitions share are at the same places. */
export function sameLayout(before: Definition, after: Definition): boolean {
  const old = new Map((before.nodes ?? []).map((node) => [node.id, node]));
  return (after.nodes ?? []).every(({ id, position, ui }) => {
    const was = old.get(id);
    return was === undefined || (same(was.position, position) && same(was.ui, ui));
  });
}

function changedFields(before: GraphNode, after: GraphNode): string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].filter((key) => !unseen.has(key) && !same(before[key], after[key])).toSorted();
}

/** sorted returns a value with its keys in order, so that equal values are equal texts. */
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

/** lineDiff compares two texts line by line, with a few equal lines around what differs. */
export function lineDiff(before: string, after: string, around = 2): Line[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  const lines: Line[] = [];
  const add = (sign: Line["sign"], texts: string[]) => {
    for (const text of texts) lines.push({ sign, text });
  };
  const found = hunks(a, b);
  let shown = 0;
  for (const [at, { start, end, newStart, newEnd }] of found.entries()) {
    add(" ", a.slice(Math.max(shown, start - around), start));
    add("-", a.slice(start, end));
    add("+", b.slice(newStart, newEnd));
    shown = Math.min(end + around, found[at + 1]?.start ?? a.length);
    add(" ", a.slice(end, shown));
  }
  return lines;
}
