import type { Definition } from "../../workflows/queries.ts";

/** relatedSteps is a step with every step before and after it. */
export function relatedSteps(definition: Definition, id: string): Set<string> {
  const out = new Set([id]);
  const walk = (from: "source" | "target", to: "source" | "target") => {
    const next = new Map<string, string[]>();
    for (const edge of definition.edges ?? []) {
      const list = next.get(edge[from]);
      if (list) list.push(edge[to]);
      else next.set(edge[from], [edge[to]]);
    }
    const seen = new Set([id]);
    const waiting = [id];
    for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
      for (const other of next.get(each) ?? []) {
        if (seen.has(other)) continue;
        seen.add(other);
        out.add(other);
        waiting.push(other);
      }
    }
  };
  walk("source", "target");
  walk("target", "source");
  return out;
}
