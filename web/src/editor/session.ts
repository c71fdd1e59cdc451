// One person at one workflow: the document, how it is kept, and who else is
// there. Where no editor room can be had, changes are saved by plain requests.
import { Awareness } from "y-protocols/awareness";
import { createStore } from "zustand/vanilla";
import type { Schemas } from "../api/client.ts";
import { ApiFailure, isFailure, sentence } from "../api/failure.ts";
import { toast } from "../ui/toast.ts";
import type { Definition } from "../workflows/queries.ts";
import { Document } from "./document.ts";
import { draw, LOCAL } from "./graph.ts";
import { type Ending, Live, type Pass } from "./live.ts";
import { newPresence, watchPresence } from "./presence.ts";
import { GraphStore } from "./store.ts";
import { Unsaved } from "./unsaved.ts";
import { forgetEdits, type UnsavedEdits } from "./unsavedStore.ts";

export type Save = "opening" | "saved" | "saving" | "offline" | "conflict" | "refused";

export interface SessionState {
  ready: boolean;
  live: boolean;
  save: Save;
  /** Why saving was refused. */
  refusal: string | null;
  canEdit: boolean;
  ending: Ending | null;
  /** What the room says is wrong with the definition. */
  problems: Schemas["Problem"][] | null;
  /** Edits made without the server that could not be merged by themselves. */
  left: UnsavedEdits[];
  /** Replaced when the document starts afresh. */
  graph: GraphStore;
}

export interface Keeper {
  /** pass opens the editor room; a 404 means there is none. */
  pass: () => Promise<Pass>;
  /** load and save are for a server without rooms; without save it can only be looked at. */
  load: () => Promise<{ definition: Definition; tag: string | null }>;
  save?: (definition: Definition, tag: string | null) => Promise<string | null>;
  mayEdit: boolean;
  user: { name: string };
  /** Whose edits of what: under this name they are kept while the server is away. */
  place: string;
}

const savePause = 800;
const resetPause = 300;

export class Session {
  readonly state = createStore<SessionState>(() => ({
    ready: false,
    live: false,
    save: "opening",
    refusal: null,
    canEdit: false,
    ending: null,
    problems: null,
    left: [],
    graph: new GraphStore(new Document()),
  }));
  readonly presence = newPresence();
  awareness: Awareness | null = null;

  private live: Live | null = null;
  private unsaved: Unsaved | null = null;
  private over = false;
  private cleanups: (() => void)[] = [];
  private tag: string | null = null;
  private changes = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private saving: Promise<void> | null = null;

  constructor(private readonly keeper: Keeper) {
    void this.open();
  }

  get document(): Document {
    return this.state.getState().graph.document;
  }

  private async open(): Promise<void> {
    for (let attempt = 0; !this.over; attempt++) {
      try {
        return this.enter(await this.keeper.pass());
      } catch (error) {
        if (this.over) return;
        if (isFailure(error) && error.status === 404) return this.alone();
        if (isFailure(error) && (error.status === 401 || error.status === 403)) return this.end("revoked");
        await new Promise((resolve) => setTimeout(resolve, Math.min(15_000, 1000 * 2 ** attempt)));
      }
    }
  }

  private enter(pass: Pass): void {
    if (this.over) return;
    const { doc } = this.document;
    const awareness = new Awareness(doc);
    this.awareness = awareness;
    awareness.setLocalState({ user: this.keeper.user, cursor: null, sel: [], drag: {} });
    this.cleanups.push(
      watchPresence(awareness, this.presence, (drags) => this.state.getState().graph.drags(drags)),
      () => awareness.destroy(),
    );
    const canEdit = pass.role === "editor" && this.keeper.mayEdit;
    this.live = new Live(doc, awareness, pass, this.keeper.pass, {
      onSynced: () => void this.begin(canEdit, true),
      onState: (connection, unsaved) => {
        if (!this.state.getState().ready) return;
        this.set({ save: connection === "away" ? "offline" : unsaved ? "saving" : "saved" });
        if (connection === "live" && !unsaved) this.unsaved?.stored();
      },
      onReset: (why) => {
        if (why.startsWith("your link")) toast.error("That change was not kept", { description: why });
        this.leave();
        this.state.getState().graph.destroy();
        this.set({ ready: false, save: "opening", canEdit: false, graph: new GraphStore(new Document()) });
        this.timer = setTimeout(() => void this.open(), resetPause);
      },
      onEnded: (ending) => this.end(ending),
      onSettled: (problems) => this.set({ problems }),
      onUnreachable: () => {
        this.leave();
        void this.alone();
      },
    });
  }

  /** alone edits without a room: what changed is saved by itself a moment later. */
  private async alone(): Promise<void> {
    try {
      await this.reload();
    } catch (error) {
      if (this.over) return;
      if (isFailure(error) && (error.status === 404 || error.status === 403)) return this.end("deleted");
      this.timer = setTimeout(() => void this.alone(), 3000);
      return;
    }
    if (this.over) return;
    const { doc, undo } = this.document;
    const changed = (_update: Uint8Array, origin: unknown) => {
      if (origin !== LOCAL && origin !== undo) return;
      this.changes++;
      this.set({ save: "saving" });
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.flush(), savePause);
    };
    doc.on("update", changed);
    this.cleanups.push(() => doc.off("update", changed));
    this.set({ save: "saved" });
    await this.begin(this.keeper.mayEdit && this.keeper.save !== undefined, false);
  }

  private async begin(canEdit: boolean, live: boolean): Promise<void> {
    this.document.editable = canEdit;
    this.document.undo.clear();
    this.set({ ready: true, canEdit, live });
    const unsaved = new Unsaved(this.document, this.keeper.place, () => this.tag);
    this.unsaved = unsaved;
    const kept = await unsaved.begin();
    if (this.over || this.unsaved !== unsaved) return;
    this.set({ left: canEdit ? this.takeBack(kept, live) : kept });
  }

  /** takeBack puts edits that were kept back into the document; those that somebody has to decide about are left. */
  private takeBack(kept: UnsavedEdits[], live: boolean): UnsavedEdits[] {
    if (live) return this.unsaved?.merge(kept) ?? [];
    // Saved by requests, a document has no history to merge with; nobody else may have saved since.
    this.unsaved?.apply(kept.filter((edits) => edits.tag === this.tag));
    return kept.filter((edits) => edits.tag !== this.tag);
  }

  /** applyLeft takes over the edits that were left; they win over what others have changed. */
  applyLeft(): void {
    this.unsaved?.apply(this.state.getState().left);
    this.set({ left: [] });
  }

  discardLeft(): void {
    void forgetEdits(this.state.getState().left.map(({ key }) => key));
    this.set({ left: [] });
  }

  /** lossy tells whether leaving now would lose edits. */
  lossy(): boolean {
    const { save } = this.state.getState();
    return save === "conflict" || save === "refused" || (this.unsaved?.lossy() ?? false);
  }

  /** reload takes over what the server has. */
  async reload(): Promise<void> {
    const { definition, tag } = await this.keeper.load();
    if (this.over) return;
    this.tag = tag;
    draw(this.document.doc, definition, this);
    this.set({ save: "saved", refusal: null });
  }

  /** overwrite saves what is here in spite of what others have saved. */
  async overwrite(): Promise<void> {
    this.tag = null;
    await this.flush();
  }

  /** flush waits until everything is kept; a room does that before a run by itself. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    const { save } = this.keeper;
    if (this.state.getState().live || !save || !this.document.editable) return;
    await this.saving;
    if (this.state.getState().save === "saved") return;
    this.saving = this.put(save);
    await this.saving;
  }

  private async put(save: NonNullable<Keeper["save"]>): Promise<void> {
    const before = this.changes;
    try {
      this.tag = await save(this.document.definition(), this.tag);
      this.set({ save: this.changes === before ? "saved" : "saving", refusal: null });
      if (this.changes === before) this.unsaved?.stored();
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      if (error.status === 412) this.set({ save: "conflict" });
      else if (error.status >= 400 && error.status < 500) this.set({ save: "refused", refusal: sentence(error) });
      else {
        this.set({ save: "offline" });
        this.timer = setTimeout(() => void this.flush(), 5000);
      }
    }
  }

  private set(change: Partial<SessionState>): void {
    if (!this.over) this.state.setState(change);
  }

  private end(ending: Ending): void {
    this.leave();
    this.document.editable = false;
    this.set({ ending, canEdit: false, ready: true });
  }

  private leave(): void {
    this.unsaved?.stop();
    this.live?.destroy();
    this.live = null;
    this.awareness = null;
    for (const cleanup of this.cleanups.splice(0)) cleanup();
    this.presence.setState({ people: [], cursors: new Map(), chosen: new Map() });
  }

  destroy(): void {
    if (!this.state.getState().live) void this.flush().catch(() => {});
    this.over = true;
    clearTimeout(this.timer);
    this.leave();
    this.state.getState().graph.destroy();
    this.document.destroy();
  }
}
