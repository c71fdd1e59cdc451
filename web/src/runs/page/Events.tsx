import { useVirtualizer } from "@tanstack/react-virtual";
import { CircleAlert, Info, TriangleAlert } from "lucide-react";
import { useRef } from "react";
import { useStore } from "zustand";
import { exact } from "../../ui/format.ts";
import type { RunEvent } from "../queries.ts";
import type { RunStore } from "../runStore.ts";

const icons = { info: Info, warning: TriangleAlert, error: CircleAlert };
const inks = { info: "text-muted", warning: "text-warn", error: "text-danger" };

/** Events lists the events of the run in order. */
export function Events({ store, node }: { store: RunStore; node: string | null }) {
  const all = useStore(store.state, (state) => state.events);
  const events = node ? all.filter((event) => event.nodeId === node) : all;
  const frame = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: events.length,
    getScrollElement: () => frame.current,
    estimateSize: () => 40,
    overscan: 20,
  });
  if (events.length === 0) return <p className="p-4 text-sm text-muted">No events{node && " for this step"} yet.</p>;
  return (
    <section
      ref={frame}
      aria-label="Events"
      tabIndex={0}
      className="relative max-h-[32rem] overflow-auto rounded-lg border bg-surface"
    >
      <ol className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const event = events[item.index];
          if (!event) return null;
          const Icon = icons[event.level];
          return (
            <li
              key={event.seq}
              ref={virtual.measureElement}
              data-index={item.index}
              className="absolute inset-x-0 flex items-start gap-2.5 border-b px-3 py-2 text-sm"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <Icon className={`mt-0.5 size-4 shrink-0 ${inks[event.level]}`} role="img" aria-label={event.level} />
              <span className="min-w-0 flex-1 break-words">{textOf(event)}</span>
              <time
                dateTime={event.at}
                title={exact(event.at)}
                className="tabular shrink-0 text-[13px] whitespace-nowrap text-muted"
              >
                {new Date(event.at).toLocaleTimeString()}
              </time>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** textOf begins with a capital letter, unless it begins with the name of a step. */
function textOf({ message, nodeId }: RunEvent): string {
  return nodeId === null ? message.charAt(0).toUpperCase() + message.slice(1) : message;
}
