import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import { useStore } from "zustand";
import { active, looks } from "../../page/status.tsx";
import { classes } from "../../ui/classes.ts";
import { duration } from "../../ui/format.ts";
import { useNow } from "../../ui/Time.tsx";
import type { RunEvent } from "../queries.ts";
import type { RunStore } from "../runStore.ts";
import { attemptsOf } from "./attempts.ts";

const row = 34;
const endings = { succeeded: "completed", failed: "failed", running: "running", cached: "reused" };

/** Timeline shows when each attempt of each step ran. */
export function Timeline({
  store,
  chosen,
  onChoose,
}: {
  store: RunStore;
  chosen: string | null;
  onChoose: (id: string) => void;
}) {
  const nodes = useStore(store.state, (state) => state.nodes);
  const events = useStore(store.state, (state) => state.events);
  const run = useStore(store.state, (state) => state.run);
  const going = active(run.status);
  const now = useNow();
  const frame = useRef<HTMLElement>(null);
  const rows = useMemo(() => {
    const byNode = new Map<string, RunEvent[]>();
    for (const event of events) {
      if (event.nodeId) byNode.set(event.nodeId, [...(byNode.get(event.nodeId) ?? []), event]);
    }
    return [...nodes.values()]
      .map((node) => ({ node, attempts: attemptsOf(node, byNode.get(node.id) ?? []) }))
      .toSorted((a, b) => (a.attempts[0]?.from ?? Infinity) - (b.attempts[0]?.from ?? Infinity));
  }, [nodes, events]);
  const from = Date.parse(run.startedAt ?? run.createdAt);
  const to = Math.max(from + 1, going ? now : Date.parse(run.finishedAt ?? "") || now);
  const place = (at: number) => `${Math.max(0, Math.min(100, ((at - from) / (to - from)) * 100))}%`;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => row,
    overscan: 10,
  });
  const marks = [0, 0.25, 0.5, 0.75, 1];
  return (
    <section
      ref={frame}
      aria-label="Timeline"
      tabIndex={0}
      className="relative max-h-[32rem] overflow-auto rounded-lg border bg-surface"
    >
      <div className="sticky top-0 z-10 flex border-b bg-surface text-xs text-muted">
        <span className="w-44 shrink-0 px-3 py-1.5 max-sm:w-28">Total {duration(to - from)}</span>
        <div className="relative mr-4 flex-1">
          {marks.map((mark) => (
            <span
              key={mark}
              className={classes(
                "tabular absolute py-1.5 whitespace-nowrap",
                mark === 1 ? "-translate-x-full" : mark > 0 && "-translate-x-1/2",
                mark % 0.5 !== 0 && "max-sm:hidden",
              )}
              style={{ left: `${mark * 100}%` }}
            >
              {to - from < 2000 ? `${Math.round((to - from) * mark)} ms` : duration((to - from) * mark)}
            </span>
          ))}
        </div>
      </div>
      <ul className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const entry = rows[item.index];
          if (!entry) return null;
          const { node, attempts } = entry;
          const look = looks[node.status];
          return (
            <li
              key={node.id}
              className={classes(
                "absolute inset-x-0 flex items-center border-b",
                node.id === chosen && "bg-accent-soft",
              )}
              style={{ height: row, transform: `translateY(${item.start}px)` }}
            >
              <button
                type="button"
                onClick={() => onChoose(node.id)}
                aria-pressed={node.id === chosen}
                className="flex h-full w-44 shrink-0 items-center gap-1.5 px-3 text-left text-[13px] hover:underline max-sm:w-28"
              >
                <span style={{ color: look.color }}>
                  <look.icon className="size-4 shrink-0" aria-hidden />
                </span>
                <span className="sr-only">{look.word}: </span>
                <span className="truncate">{node.name || node.id}</span>
              </button>
              <div className="relative mr-4 h-full flex-1">
                {attempts.map((attempt) => {
                  const end = attempt.to ?? (going ? now : to);
                  const label = `${node.name || node.id}, attempt ${attempt.number}: ${endings[attempt.ended]}, ${duration(end - attempt.from)}`;
                  return (
                    <span
                      key={`${attempt.number} ${attempt.from}`}
                      role="img"
                      aria-label={label}
                      title={label}
                      className={classes(
                        "absolute top-2 h-4.5 min-w-1 rounded-sm",
                        attempt.ended === "failed" &&
                          "bg-[repeating-linear-gradient(45deg,var(--danger)_0_6px,transparent_6px_9px)]",
                        attempt.ended === "cached" && "border-2 border-ok bg-ok-soft",
                        attempt.ended === "running" && "animate-[breathe_1.6s_infinite]",
                      )}
                      style={{
                        left: place(attempt.from),
                        width: `calc(${place(end)} - ${place(attempt.from)})`,
                        ...((attempt.ended === "succeeded" || attempt.ended === "running") && {
                          background: attempt.ended === "running" ? "var(--info)" : "var(--ok)",
                        }),
                      }}
                    />
                  );
                })}
              </div>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
