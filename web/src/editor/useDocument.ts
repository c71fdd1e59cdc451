import { useMemo, useSyncExternalStore } from "react";
import type { GraphNode, NamedPart } from "../definition/model.ts";
import { useGraph } from "./context.ts";
import { membersOf } from "./document/ydoc.ts";

/** useNamed returns the named values of a part of the definition, again when one of them changes. */
export function useNamed(part: NamedPart): Record<string, unknown> {
  const { document } = useGraph();
  const store = useMemo(() => {
    let value = membersOf(document.roots[part]);
    return {
      subscribe: (listener: () => void) => {
        const read = () => {
          value = membersOf(document.roots[part]);
          listener();
        };
        read();
        document.roots[part].observeDeep(read);
        return () => document.roots[part].unobserveDeep(read);
      },
      now: () => value,
    };
  }, [document, part]);
  return useSyncExternalStore(store.subscribe, store.now);
}

/** useNode returns a step as it is now. */
export function useNode(key: string | null): GraphNode | null {
  const graph = useGraph();
  return useSyncExternalStore(
    graph.subscribe,
    () => graph.now().nodes.find((node) => node.id === key)?.data.node ?? null,
  );
}
