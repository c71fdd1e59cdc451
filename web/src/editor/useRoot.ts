import { useMemo, useSyncExternalStore } from "react";
import type { GraphNode } from "../graph/model.ts";
import { useGraph } from "./context.ts";
import type { NamedRoot } from "./graph.ts";

/** useRoot is the named values of the document, again when one of them changes. */
export function useRoot(root: NamedRoot): Record<string, unknown> {
  const { document } = useGraph();
  const store = useMemo(() => {
    let value = document.roots[root].toJSON();
    return {
      subscribe: (listener: () => void) => {
        const read = () => {
          value = document.roots[root].toJSON();
          listener();
        };
        read();
        document.roots[root].observe(read);
        return () => document.roots[root].unobserve(read);
      },
      now: () => value,
    };
  }, [document, root]);
  return useSyncExternalStore(store.subscribe, store.now);
}

/** useNode is a node as it is now. */
export function useNode(id: string | null): GraphNode | null {
  const graph = useGraph();
  return useSyncExternalStore(
    graph.subscribe,
    () => graph.now().nodes.find((node) => node.id === id)?.data.node ?? null,
  );
}
