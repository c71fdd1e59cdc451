import { useSyncExternalStore } from "react";
import { ago, exact } from "./format.ts";

// One clock for the page: thousands of times on screen tick together.
let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** current is the page's clock. While nobody listens it stands still, and is set before it is read. */
function current(): number {
  if (timer === undefined && Date.now() - now > 1000) now = Date.now();
  return now;
}

/** useNow ticks every second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, current);
}

/** Time is relative, and exact when asked. */
export function Time({ at }: { at: string }) {
  const text = useSyncExternalStore(subscribe, () => ago(at, current()));
  return (
    <time dateTime={at} title={exact(at)} className="whitespace-nowrap">
      {text}
    </time>
  );
}
