// Shortcuts as text: "Mod+Shift+Z", "Delete", "A". Mod is Ctrl, and Command on a Mac.

const mac = /Mac|iP(hone|ad)/.test(globalThis.navigator?.platform ?? "");

/** pressed returns an event as text. */
export function pressed(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "shiftKey" | "altKey">): string {
  const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
  const parts = [
    (event.ctrlKey || event.metaKey) && "Mod",
    event.altKey && "Alt",
    // What Shift types is another key, such as ?, unless it is a letter.
    event.shiftKey && (key.length > 1 || /[A-Z]/.test(key)) && "Shift",
    key,
  ];
  return parts.filter(Boolean).join("+");
}

/** shown returns a shortcut as people know it. */
export function shown(shortcut: string, onMac = mac): string {
  const names: Record<string, string> = { Mod: onMac ? "⌘" : "Ctrl", Shift: onMac ? "⇧" : "Shift", Escape: "Esc" };
  return shortcut
    .split("+")
    .map((key) => names[key] ?? key)
    .join(" ");
}
