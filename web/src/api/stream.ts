// A run's live stream: one per tab, closed while the tab is hidden, reopened
// where it left off.
import { useEffect, useRef, useState } from "react";
import type { Api, Schemas } from "./client.ts";
import { ApiFailure, sentence } from "./failure.ts";
import { frames } from "./sse.ts";
import { useApi } from "./team.ts";

export type RunMessage = Schemas["RunMessage"] & {
  /** The offset of the log after this message. It is more than its text is long if the log has a gap. */
  logEnd?: number;
};

export type Connection = "connecting" | "live" | "reconnecting" | "paused" | "ended" | "failed";

export interface StreamState {
  connection: Connection;
  error: string | null;
}

interface Options {
  signal: AbortSignal;
  onMessage: (message: RunMessage) => void;
  onConnection: (connection: Connection, error?: string) => void;
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
}

// The server says something every 25 seconds, if only that it is there.
const longestSilence = 60_000;

/** listen aborts a request once nothing has been heard for too long: most connections that are lost just fall silent. */
function listen(signal: AbortSignal) {
  const silent = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), longestSilence);
  };
  heard();
  return { signal: AbortSignal.any([signal, silent.signal]), heard, end: () => clearTimeout(timer) };
}

/** follow reads a run's stream until the run has ended or signal fires, and reconnects in between. */
export async function follow(
  api: Api,
  runId: string,
  { signal, onMessage, onConnection, wait = pause }: Options,
): Promise<void> {
  let last: string | null = null;
  for (let attempt = 0; !signal.aborted; attempt++) {
    onConnection(attempt === 0 ? "connecting" : "reconnecting");
    const listening = listen(signal);
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (last) headers["Last-Event-ID"] = last;
      const response = await api.raw(`/api/runs/${encodeURIComponent(runId)}/stream`, {
        headers,
        signal: listening.signal,
      });
      if (!response.body) return;
      for await (const frame of frames(response.body, listening.heard)) {
        attempt = 0;
        last = frame.id ?? last;
        onConnection("live");
        const message = JSON.parse(frame.data) as RunMessage;
        const logEnd = Number(frame.id?.split(":")[1]);
        onMessage(Number.isSafeInteger(logEnd) ? { ...message, logEnd } : message);
        if (message.type === "done") return onConnection("ended");
      }
    } catch (error) {
      if (signal.aborted) return;
      // A refusal stays one; only the network is worth another try.
      if (error instanceof ApiFailure && error.status >= 400 && error.status < 500 && error.status !== 429) {
        return onConnection("failed", sentence(error));
      }
    } finally {
      listening.end();
    }
    if (signal.aborted) return;
    onConnection("reconnecting");
    await wait(Math.min(15_000, 500 * 2 ** Math.min(attempt, 5)), signal);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

/** useRunStream follows a run while the tab can be seen. It hands messages on without rendering. */
export function useRunStream(runId: string | null, onMessage: (message: RunMessage) => void): StreamState {
  const [state, setState] = useState<StreamState>({ connection: "connecting", error: null });
  const api = useApi();
  const visible = useVisible();
  const handler = useRef(onMessage);
  useEffect(() => {
    handler.current = onMessage;
  });
  useEffect(() => {
    if (!runId) return;
    if (!visible) {
      setState((now) => (now.connection === "ended" ? now : { connection: "paused", error: null }));
      return;
    }
    const stop = new AbortController();
    void follow(api, runId, {
      signal: stop.signal,
      onMessage: (message) => handler.current(message),
      onConnection: (connection, error) =>
        setState((now) => (now.connection === connection ? now : { connection, error: error ?? null })),
    });
    return () => stop.abort();
  }, [api, runId, visible]);
  return state;
}

export function useVisible(): boolean {
  const [visible, setVisible] = useState(() => document.visibilityState !== "hidden");
  useEffect(() => {
    const change = () => setVisible(document.visibilityState !== "hidden");
    document.addEventListener("visibilitychange", change);
    return () => document.removeEventListener("visibilitychange", change);
  }, []);
  return visible;
}
