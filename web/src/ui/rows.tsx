// What a long table shows of its rows, and which of them are ticked.
import { useCallback, useState } from "react";
import { Button } from "./Button.tsx";

const step = 500;

/** useFirst is the first rows, and a button that shows more of them. */
export function useFirst<T>(rows: readonly T[], atOnce: number) {
  const [most, setMost] = useState(atOnce);
  const rest = rows.length - most;
  return {
    shown: rows.slice(0, most),
    more: rest > 0 && <Button onClick={() => setMost(most + step)}>Show {Math.min(step, rest)} more</Button>,
  };
}

/** useTicks is which rows are ticked. */
export function useTicks() {
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const tick = useCallback((ids: readonly string[], on: boolean) => {
    setTicked((old) => {
      const next = new Set(old);
      for (const id of ids) on ? next.add(id) : next.delete(id);
      return next;
    });
  }, []);
  return { ticked, tick, clear: () => setTicked(new Set()) };
}
