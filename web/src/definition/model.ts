// The parts of a definition, as the API describes them.
import type { Schemas } from "../api/client.ts";
import { isRecord } from "../api/failure.ts";

export type Definition = Schemas["Definition"];
export type GraphNode = NonNullable<Definition["nodes"]>[number];
export type GraphEdge = NonNullable<Definition["edges"]>[number];
export type Problem = Schemas["Problem"];
export type Edit = Schemas["Edit"];

/** The maps of a definition that hold plain values by name. */
export const namedParts = ["parameters", "inputs", "outputs"] as const;
export type NamedPart = (typeof namedParts)[number];

/** same reports whether two plain values are equal. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, at) => same(each, b[at]));
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
}

/** groupBy lists the members of a list by their key, in order. */
export function groupBy<T>(list: Iterable<T>, keyOf: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const each of list) {
    const group = groups.get(keyOf(each));
    if (group) group.push(each);
    else groups.set(keyOf(each), [each]);
  }
  return groups;
}

/** valueAt reads fields of a definition by their paths, in which steps and edges are named by ids. */
export function valueAt(definition: Definition): (path: string) => unknown {
  return (path) => {
    let value: unknown = definition;
    for (const name of path.split(".")) {
      if (Array.isArray(value)) value = value.find((each: { id?: unknown }) => each.id === name);
      else if (typeof value === "object" && value !== null && Object.hasOwn(value, name))
        value = (value as Record<string, unknown>)[name];
      else return undefined;
    }
    return value;
  };
}
