// Watches a document for edits that the server does not have, and keeps them
// in the browser until it does.
import * as Y from "yjs";
import { type GraphEdge, type GraphNode, same } from "../graph/model.ts";
import type { Definition } from "../workflows/queries.ts";
import type { Document } from "./document.ts";
import { definitionOf, LOCAL } from "./graph.ts";
import { editsOf, forgetEdits, keepEdits, type UnsavedEdits } from "./unsavedStore.ts";

const pause = 200;
const basePause = 1500;

export class Unsaved {
  private readonly key: string;
  private known: Uint8Array = new Uint8Array();
  private base: Definition | null = null;
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

  /** begin starts from what the server has, and hands out what was kept before. */
  async begin(): Promise<UnsavedEdits[]> {
    this.known = Y.encodeStateVector(this.document.doc);
    this.base = this.document.definition();
    this.document.doc.on("update", this.changed);
    addEventListener("pagehide", this.write);
    return await editsOf(this.place);
  }

  private changed = (_update: Uint8Array, origin: unknown): void => {
    if (origin !== LOCAL && origin !== this.document.undo) return;
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
      if (!this.dirty) this.base = this.document.definition();
    }, basePause);
    if (this.over) clearTimeout(this.baseTimer);
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.dirty || this.merged.length > 0) void forgetEdits([this.key, ...this.merged]);
    this.dirty = false;
    this.merged = [];
  }

  /** merge adds kept edits to the document where they belong to its history; those that do not are handed back. */
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

  /** apply writes kept edits over what is here now: their fields win. */
  apply(list: readonly UnsavedEdits[]): void {
    for (const edits of list) {
      this.merged.push(edits.key);
      this.document.replace(rebase(edits.base, definitionIn(edits), this.document.definition()));
    }
  }

  /** lossy tells whether leaving now would lose edits. */
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

/** descends tells whether a document has everything that a state vector names. */
export function descends(doc: Y.Doc, known: Uint8Array): boolean {
  const has = Y.decodeStateVector(Y.encodeStateVector(doc));
  return [...Y.decodeStateVector(known)].every(([client, clock]) => (has.get(client) ?? 0) >= clock);
}

/** definitionIn is the definition with the edits. */
export function definitionIn(edits: UnsavedEdits): Definition {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, edits.state);
  const definition = definitionOf(doc);
  doc.destroy();
  return definition;
}

type Fields = Record<string, unknown>;

/** rebase makes the changes from base to mine in theirs, field by field. */
export function rebase(base: Definition, mine: Definition, theirs: Definition): Definition {
  const byId = <T extends { id: string }>(list: readonly T[] | undefined) =>
    Object.fromEntries((list ?? []).map((each) => [each.id, each])) as Record<string, T>;
  const [oldNodes, myNodes, nodes] = [byId(base.nodes), byId(mine.nodes), byId(theirs.nodes)];
  const merged = changes(oldNodes, myNodes, nodes, (id) =>
    nodes[id] && oldNodes[id]
      ? (changes(oldNodes[id] as Fields, myNodes[id] as Fields, nodes[id] as Fields) as GraphNode)
      : myNodes[id],
  );
  const { nodes: _, edges: __, ...rest } = theirs;
  return {
    ...rest,
    nodes: Object.values(merged) as GraphNode[],
    edges: Object.values(changes(byId(base.edges), byId(mine.edges), byId(theirs.edges))) as GraphEdge[],
    ...Object.fromEntries(
      (["parameters", "inputs", "outputs"] as const).map((part) => [
        part,
        changes((base[part] ?? {}) as Fields, (mine[part] ?? {}) as Fields, (theirs[part] ?? {}) as Fields),
      ]),
    ),
  } as Definition;
}

/** changes is theirs with every key that differs between base and mine taken from mine. */
function changes(base: Fields, mine: Fields, theirs: Fields, take = (key: string): unknown => mine[key]): Fields {
  const out = { ...theirs };
  for (const key of new Set([...Object.keys(base), ...Object.keys(mine)])) {
    if (same(base[key], mine[key])) continue;
    if (key in mine) out[key] = take(key);
    else delete out[key];
  }
  return out;
}
