// Short messages that come and go; ui/Toasts.tsx shows them.
export interface Toast {
  id: number;
  tone: "ok" | "danger" | "info";
  text: string;
  description?: string;
  action?: { label: string; run: () => void };
}

type Extra = Pick<Toast, "description" | "action"> & { ms?: number };

let next = 1;
let shown: readonly Toast[] = [];
const listeners = new Set<() => void>();

function change(toasts: readonly Toast[]): void {
  shown = toasts;
  for (const listener of listeners) listener();
}

function show(tone: Toast["tone"], text: string, { ms, ...extra }: Extra = {}): number {
  const id = next++;
  change([...shown.slice(-3), { id, tone, text, ...extra }]);
  setTimeout(() => dismiss(id), ms ?? (tone === "danger" ? 10_000 : 6000));
  return id;
}

export function dismiss(id: number): void {
  if (shown.some((each) => each.id === id)) change(shown.filter((each) => each.id !== id));
}

export const toasts = {
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  now: (): readonly Toast[] => shown,
};

/** toast tells that something happened, without asking for attention. */
export const toast = {
  ok: (text: string, extra?: Extra) => show("ok", text, extra),
  error: (text: string, extra?: Extra) => show("danger", text, extra),
  info: (text: string, extra?: Extra) => show("info", text, extra),
};
