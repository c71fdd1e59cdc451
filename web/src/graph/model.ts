// The parts of a definition that are drawn.
import { isRecord } from "../api/failure.ts";
import type { Definition } from "../workflows/queries.ts";

export type GraphNode = NonNullable<Definition["nodes"]>[number];
export type GraphEdge = NonNullable<Definition["edges"]>[number];

/** same compares plain values. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, at) => same(each, b[at]));
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
}
