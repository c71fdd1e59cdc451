import { useSyncExternalStore } from "react";

const key = "millrace.single-keys";
const event = "millrace:single-keys";

/** singleKeys tells whether keys that are pressed without Ctrl or Cmd are shortcuts in this browser. */
export function singleKeys(): boolean {
  return localStorage.getItem(key) !== "off";
}

export function chooseSingleKeys(on: boolean): void {
  if (on) localStorage.removeItem(key);
  else localStorage.setItem(key, "off");
  dispatchEvent(new Event(event));
}

export function useSingleKeys(): boolean {
  return useSyncExternalStore((changed) => {
    addEventListener(event, changed);
    addEventListener("storage", changed);
    return () => {
      removeEventListener(event, changed);
      removeEventListener("storage", changed);
    };
  }, singleKeys);
}
