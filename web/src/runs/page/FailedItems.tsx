import { useQuery } from "@tanstack/react-query";
import { useStore } from "zustand";
import { ask } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";
import { LogLines } from "../log/LogLines.tsx";
import type { RunNode } from "../queries.ts";
import type { RunStore } from "../runStore.ts";
import { itemCauseOf, named, tailOf } from "./failure.ts";
import { itemText } from "./items.ts";

const shown = 5;
const lines = 3;

interface FailedItemsProps {
  store: RunStore;
  node: RunNode;
  onLog: (item: number) => void;
}

/** FailedItems lists the first failed items of a scatter with the end of their logs. */
export function FailedItems({ store, node, onLog }: FailedItemsProps) {
  const events = useStore(store.state, (state) => state.events);
  const items = useQuery({
    queryKey: ["failed items", store.run.id, node.id],
    queryFn: ({ client }) =>
      ask(
        apiOf(client).GET("/api/runs/{id}/nodes/{nodeId}/shards", {
          params: { path: { id: store.run.id, nodeId: node.id }, query: { status: "failed", limit: shown } },
        }),
      ),
  });
  const more = (node.shards?.failed ?? 0) - shown;
  return (
    <>
      <ul aria-label="Failed items" className="mt-3 space-y-2 text-sm">
        {items.data?.map((item) => {
          const tail = tailOf(itemCauseOf(events, node.id, item.index), lines);
          const message = item.attempts.at(-1)?.message;
          return (
            <li key={item.index}>
              <p>
                <button type="button" className="font-medium underline" onClick={() => onLog(item.index)}>
                  Item {item.index}: {itemText(item)}
                </button>
                {message && ` ${named(message, node)}`}
              </p>
              {tail.length > 0 && <LogLines lines={tail} />}
            </li>
          );
        })}
      </ul>
      {more > 0 && <p className="mt-2 text-sm">{more} more under Items.</p>}
    </>
  );
}
