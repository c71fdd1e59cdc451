// Whether anything was uploaded in this tab. The tray loads with the first file, so
// that a first page does without it.
import { useSyncExternalStore } from "react";

let shown = false;
const listeners = new Set<() => void>();

/** showTray has the tray appear. It stays until the tab is closed. */
export function showTray(): void {
  if (shown) return;
  shown = true;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** useTrayShown tells whether the tray has a reason to be there. */
export function useTrayShown(): boolean {
  return useSyncExternalStore(subscribe, () => shown);
}
