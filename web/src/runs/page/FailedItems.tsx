import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useStore } from "zustand";
import { askPage } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";
import { Problem } from "../../page/Problem.tsx";
import { Button } from "../../ui/Button.tsx";
import { count } from "../../ui/format.ts";
import { LogLines } from "../log/LogLines.tsx";
import type { RunNode } from "../queries.ts";
import type { RunStore } from "../runStore.ts";
import { itemCauses, named, tailOf } from "./failure.ts";
import { itemText } from "./items.ts";

const first = 5;
const more = 20;
const tailLines = 3; // The error is usually in the last lines of a log.

interface FailedItemsProps {
  store: RunStore;
  node: RunNode;
  onLog: (item: number) => void;
}

/** FailedItems lists the failed items of a scatter with their errors: the first few, and more on request. */
export function FailedItems({ store, node, onLog }: FailedItemsProps) {
  const events = useStore(store.state, (state) => state.events);
  const causes = useMemo(() => itemCauses(events, node.id), [events, node.id]);
  const items = useInfiniteQuery({
    queryKey: ["failed items", store.run.id, node.id],
    queryFn: ({ client, pageParam }) =>
      askPage(
        apiOf(client).GET("/api/runs/{id}/nodes/{nodeId}/shards", {
          params: {
            path: { id: store.run.id, nodeId: node.id },
            query: { status: "failed", limit: pageParam ? more : first, ...(pageParam && { cursor: pageParam }) },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next ?? undefined,
  });
  const reason = useStore(store.state, (state) => state.run.errorMessage); // shown above the list
  const rows = items.data?.pages.flatMap((page) => page.rows) ?? [];
  const left = (node.shards?.failed ?? 0) - rows.length;
  return (
    <>
      <ul aria-label="Failed items" className="mt-3 max-h-[36rem] space-y-2 overflow-y-auto text-sm">
        {rows.map((item) => {
          const lines = tailOf(causes.get(item.index) ?? null, tailLines);
          const message = item.attempts.at(-1)?.message;
          return (
            <li key={item.index}>
              <p>
                <button type="button" className="font-medium underline" onClick={() => onLog(item.index)}>
                  Item {item.index}: {itemText(item)}
                </button>
                {message && message !== reason && ` ${named(message, node)}`}
              </p>
              {lines.length > 0 && <LogLines lines={lines} />}
            </li>
          );
        })}
      </ul>
      {items.error && <Problem error={items.error} retry={() => void items.fetchNextPage()} />}
      {items.hasNextPage && left > 0 && (
        <Button size="sm" className="mt-2" busy={items.isFetchingNextPage} onClick={() => void items.fetchNextPage()}>
          {left > more ? `Show ${more} more of ${count(left)}` : `Show the other ${count(left)}`}
        </Button>
      )}
    </>
  );
}
