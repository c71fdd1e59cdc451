// Edits that the server does not have yet, in the browser's own database. They
// outlive the page, the tab and the browser, and are forgotten when the server
// has stored them.
import type { Keyed } from "../definition/merge.ts";
import type { Definition } from "../definition/model.ts";

export interface UnsavedEdits {
  key: string;
  /** The state vector of what the server was known to have. */
  known: Uint8Array;
  /** The whole document, with the edits. */
  state: Uint8Array;
  /** The definition before them. */
  base: Keyed | Definition;
  /** The version that plain requests had saved last. */
  tag: string | null;
  at: number;
}

const name = "unsaved";
let opened: Promise<IDBDatabase> | null = null;

function database(): Promise<IDBDatabase> {
  opened ??= new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open("millrace", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(name, { keyPath: "key" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

async function run<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const store = (await database()).transaction(name, mode).objectStore(name);
  return new Promise((resolve, reject) => {
    const request = work(store);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export async function keepEdits(edits: UnsavedEdits): Promise<void> {
  await run("readwrite", (store) => store.put(edits));
}

/** editsOf lists what was kept of one person's work on one workflow, the oldest first: one entry for each tab. */
export async function editsOf(place: string): Promise<UnsavedEdits[]> {
  if (typeof indexedDB === "undefined") return [];
  try {
    const found = await run("readonly", (store) => store.getAll(IDBKeyRange.bound(`${place} `, `${place} \uffff`)));
    return (found as UnsavedEdits[]).toSorted((a, b) => a.at - b.at);
  } catch {
    return []; // a browser without a database of its own keeps nothing
  }
}

export async function forgetEdits(keys: readonly string[]): Promise<void> {
  if (typeof indexedDB === "undefined") return;
  for (const key of keys) await run("readwrite", (store) => store.delete(key)).catch(() => {});
}
