// Watches a document for edits that the server does not have, and keeps them
// in the browser until it does.
import * as Y from "yjs";
import { type Keyed, keyed } from "../definition/merge.ts";
import type { Definition } from "../definition/model.ts";
import { alignKeys, type Document } from "./document/document.ts";
import { definitionOf, keyedOf, LOCAL } from "./document/ydoc.ts";
import { editsOf, forgetEdits, keepEdits, type UnsavedEdits } from "./unsavedStore.ts";

const pause = 200;
const basePause = 1500;

export class Unsaved {
  private readonly key: string;
  private known: Uint8Array = new Uint8Array();
  private base: Keyed | null = null;
  private dirty = false;
  private failed = false;
  private over = false;
  private merged: string[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private baseTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly document: Document,
    private readonly place: string,
    private readonly tag: () => string | null,
  ) {
    this.key = `${place} ${document.doc.clientID}`;
  }

  /** begin starts from what the server has, and returns what was kept before. */
  async begin(): Promise<UnsavedEdits[]> {
    this.known = Y.encodeStateVector(this.document.doc);
    this.base = this.document.keyed();
    this.document.doc.on("update", this.changed);
    addEventListener("pagehide", this.write);
    return await editsOf(this.place);
  }

  private changed = (_update: Uint8Array, origin: unknown): void => {
    if (!this.document.isOwn(origin)) return;
    this.dirty = true;
    this.timer ??= setTimeout(this.write, pause);
  };

  /** write keeps what is not stored yet. */
  write = (): void => {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.dirty || !this.base) return;
    const edits = {
      key: this.key,
      known: this.known,
      state: Y.encodeStateAsUpdate(this.document.doc),
      base: this.base,
      tag: this.tag(),
      at: Date.now(),
    };
    keepEdits(edits).then(
      () => {
        this.failed = false;
      },
      () => {
        this.failed = true;
      },
    );
  };

  /** stored forgets what was kept: the server has everything that is here. */
  stored(): void {
    this.known = Y.encodeStateVector(this.document.doc);
    clearTimeout(this.baseTimer);
    this.baseTimer = setTimeout(() => {
      if (!this.dirty) this.base = this.document.keyed();
    }, basePause);
    if (this.over) clearTimeout(this.baseTimer);
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.dirty || this.merged.length > 0) void forgetEdits([this.key, ...this.merged]);
    this.dirty = false;
    this.merged = [];
  }

  /** merge adds kept edits to the document where they belong to its history. It returns those that do not. */
  merge(list: readonly UnsavedEdits[]): UnsavedEdits[] {
    const foreign = list.filter((edits) => !descends(this.document.doc, edits.known));
    for (const edits of list) {
      if (foreign.includes(edits)) continue;
      this.merged.push(edits.key);
      Y.applyUpdate(this.document.doc, edits.state, LOCAL);
    }
    if (!this.dirty) this.stored(); // the server had them all
    return foreign;
  }

  /** apply makes kept edits in a document without their history: where both changed a field, they win. */
  apply(list: readonly UnsavedEdits[]): void {
    for (const edits of list) {
      this.merged.push(edits.key);
      const [base, mine] = [baseOf(edits), inDocument(edits, keyedOf)];
      this.document.mergeIn(alignKeys(base, base, this.document), alignKeys(mine, base, this.document));
    }
  }

  /** lossy reports whether leaving now would lose edits. */
  lossy(): boolean {
    return this.dirty && this.failed;
  }

  stop(): void {
    this.write();
    this.over = true;
    clearTimeout(this.baseTimer);
    this.document.doc.off("update", this.changed);
    removeEventListener("pagehide", this.write);
  }
}

/** descends reports whether a document has everything that a state vector names. */
export function descends(doc: Y.Doc, known: Uint8Array): boolean {
  const has = Y.decodeStateVector(Y.encodeStateVector(doc));
  return [...Y.decodeStateVector(known)].every(([client, clock]) => (has.get(client) ?? 0) >= clock);
}

/** definitionIn reads the definition with the edits. */
export function definitionIn(edits: UnsavedEdits): Definition {
  return inDocument(edits, definitionOf);
}

function inDocument<T>(edits: UnsavedEdits, read: (doc: Y.Doc) => T): T {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, edits.state);
  const found = read(doc);
  doc.destroy();
  return found;
}

/** baseOf reads the definition before the edits. An earlier version of the app kept it without keys. */
function baseOf({ base }: UnsavedEdits): Keyed {
  return base.nodes instanceof Map ? (base as Keyed) : keyed(base as Definition, (id) => id);
}
