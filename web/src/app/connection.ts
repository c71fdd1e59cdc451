import { onlineManager, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";

export type Connection = "online" | "reconnecting" | "offline";

const longestSilence = 10_000;

// The server counts as away once a request found nobody there, until one does.
let away = false;
const listeners = new Set<() => void>();

export function serverAnswered(answered: boolean): void {
  if (away === !answered) return;
  away = !answered;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  const stop = onlineManager.subscribe(listener);
  return () => {
    listeners.delete(listener);
    stop();
  };
}

/** useConnection tells whether what is on screen can be trusted, and asks again until it can. */
export function useConnection(): Connection {
  const state = useSyncExternalStore(
    subscribe,
    (): Connection => (!onlineManager.isOnline() ? "offline" : away ? "reconnecting" : "online"),
  );
  const client = useQueryClient();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (state !== "reconnecting") return;
    const timer = setTimeout(
      async () => {
        const signal = AbortSignal.timeout(longestSilence);
        const answered = await fetch("/api/health", { cache: "no-store", signal }).then(
          (response) => response.ok,
          () => false,
        );
        serverAnswered(answered);
        if (answered) await client.invalidateQueries();
        else setAttempt(attempt + 1);
      },
      Math.min(15_000, 1000 * 2 ** attempt),
    );
    return () => clearTimeout(timer);
  }, [state, attempt, client]);
  return state;
}
