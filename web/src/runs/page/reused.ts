import type { Schemas } from "../../api/client.ts";
import { count, plural } from "../../ui/format.ts";

/** reusedText is how much of a run that has ended earlier ones had computed. */
export function reusedText(
  nodes: readonly Pick<Schemas["RunNode"], "shards">[],
  { steps, items }: Schemas["RunReused"],
): string {
  const all = nodes.reduce((sum, { shards }) => sum + (shards?.total ?? 0), 0);
  const parts = [`${count(steps)} of ${plural(nodes.length, "step")}`];
  if (all > 0) parts.push(`${count(items)} of ${plural(all, "item")}`);
  return `reused ${parts.join(" and ")}`;
}
