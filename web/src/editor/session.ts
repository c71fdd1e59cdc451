// One person at one workflow: the document, how it is saved, and who else is there.
// Without an editor room, changes are saved by plain requests.
import { Awareness } from "y-protocols/awareness";
import { createStore } from "zustand/vanilla";
import { ApiFailure, isFailure, sentence } from "../api/failure.ts";
import type { Definition, Edit } from "../definition/model.ts";
import type { Name } from "../definition/references.ts";
import { toast } from "../ui/toast.ts";
import { newCodeDraft } from "./codeDraft.ts";
import { Document } from "./document/document.ts";
import { type Leftover, rename } from "./document/rename.ts";
import { GraphStore } from "./document/store.ts";
import { writeDefinition } from "./document/ydoc.ts";
import { type Ending, type Findings, Live, type Pass } from "./live.ts";
import { newPresence, watchPresence } from "./presence.ts";
import { Unsaved } from "./unsaved.ts";
import { forgetEdits, type UnsavedEdits } from "./unsavedStore.ts";

export type Save = "opening" | "saved" | "saving" | "offline" | "conflict" | "refused";

export interface SessionState {
  ready: boolean;
  live: boolean;
  save: Save;
  /** Why saving was refused. */
  refusal: string | null;
  /** Whether this person may edit the workflow. */
  canEdit: boolean;
  /** Why they cannot edit it on this screen. */
  lock: string | null;
  ending: Ending | null;
  /** What the room says is wrong with the definition. */
  findings: Findings | null;
  /** What still says an old name after a rename. */
  leftover: Leftover | null;
  /** Edits made without the server that could not be merged automatically. */
  left: UnsavedEdits[];
  /** Replaced when the document starts afresh. */
  graph: GraphStore;
}

/** Backend is how a session reaches the server. */
export interface Backend {
  /** pass opens the editor room; a 404 means there is none. */
  pass: () => Promise<Pass>;
  /** load and save are for a server without rooms. Without save the workflow can only be viewed. */
  load: () => Promise<{ definition: Definition; tag: string | null }>;
  save?: (definition: Definition, tag: string | null) => Promise<string | null>;
  mayEdit: boolean;
  user: { name: string };
  /** Identifies the person and the workflow, for edits that are kept while the server is away. */
  place: string;
}

const savePause = 800;
const saveAgain = 5000;
const loadAgain = 3000;
const resetPause = 300;
const storeTimeout = 15_000;

export class Session {
  readonly state = createStore<SessionState>(() => ({
    ready: false,
    live: false,
    save: "opening",
    refusal: null,
    canEdit: false,
    lock: null,
    ending: null,
    findings: null,
    leftover: null,
    left: [],
    graph: new GraphStore(new Document()),
  }));
  readonly presence = newPresence();
  readonly code = newCodeDraft();
  awareness: Awareness | null = null;

  private live: Live | null = null;
  private unsaved: Unsaved | null = null;
  private over = false;
  private cleanups: (() => void)[] = [];
  private tag: string | null = null;
  private changes = 0;
  private openTimer: ReturnType<typeof setTimeout> | undefined;
  private saveTimer: ReturnType<typeof setTimeout> | undefined;
  private saving: Promise<void> = Promise.resolve();

  constructor(private readonly backend: Backend) {
    void this.open();
  }

  get document(): Document {
    return this.state.getState().graph.document;
  }

  private async open(): Promise<void> {
    for (let attempt = 0; !this.over; attempt++) {
      try {
        return this.enter(await this.backend.pass());
      } catch (error) {
        if (this.over) return;
        if (isFailure(error) && error.status === 404) return this.openWithoutRoom();
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
    awareness.setLocalState({ user: this.backend.user, cursor: null, sel: [], drag: {} });
    this.cleanups.push(
      watchPresence(awareness, this.presence, (drags) => this.state.getState().graph.drags(drags)),
      () => awareness.destroy(),
    );
    const canEdit = pass.role === "editor" && this.backend.mayEdit;
    this.live = new Live(doc, awareness, pass, this.backend.pass, {
      onSynced: () => void this.begin(canEdit, true),
      onState: (connection, unsaved) => {
        if (!this.state.getState().ready) return;
        this.set({ save: connection === "away" ? "offline" : unsaved ? "saving" : "saved" });
        if (connection === "live" && !unsaved) this.unsaved?.stored();
      },
      onReset: (why) => {
        if (why.startsWith("your link")) toast.error("This change was not saved", { description: why });
        this.leave();
        this.state.getState().graph.destroy();
        this.set({ ready: false, save: "opening", canEdit: false, graph: new GraphStore(new Document()) });
        this.openTimer = setTimeout(() => void this.open(), resetPause);
      },
      onEnded: (ending) => this.end(ending),
      onFindings: (findings) => this.set({ findings }),
      onUnreachable: () => {
        this.leave();
        void this.openWithoutRoom();
      },
    });
  }

  /** openWithoutRoom edits without a room: what changed is saved a moment later. */
  private async openWithoutRoom(): Promise<void> {
    try {
      await this.reload();
    } catch (error) {
      if (this.over) return;
      if (isFailure(error) && (error.status === 404 || error.status === 403)) return this.end("deleted");
      this.openTimer = setTimeout(() => void this.openWithoutRoom(), loadAgain);
      return;
    }
    if (this.over) return;
    const { document } = this;
    const changed = (_update: Uint8Array, origin: unknown) => {
      if (!document.isOwn(origin)) return;
      this.changes++;
      this.set({ save: "saving" });
      this.saveLater(savePause);
    };
    document.doc.on("update", changed);
    this.cleanups.push(() => document.doc.off("update", changed));
    this.set({ save: "saved" });
    await this.begin(this.backend.mayEdit && this.backend.save !== undefined, false);
  }

  private async begin(canEdit: boolean, live: boolean): Promise<void> {
    this.document.undo.clear();
    this.set({ ready: true, canEdit, live });
    const unsaved = new Unsaved(this.document, this.backend.place, () => this.tag);
    this.unsaved = unsaved;
    const kept = await unsaved.begin();
    if (this.over || this.unsaved !== unsaved) return;
    this.set({ left: canEdit ? this.restore(kept, live) : kept });
  }

  /** restore puts edits that were kept back into the document. It returns those that somebody has to decide about. */
  private restore(kept: UnsavedEdits[], live: boolean): UnsavedEdits[] {
    if (live) return this.unsaved?.merge(kept) ?? [];
    // Saved by requests, a document has no history to merge with; nobody else may have saved since.
    this.unsaved?.apply(kept.filter((edits) => edits.tag === this.tag));
    return kept.filter((edits) => edits.tag !== this.tag);
  }

  /** applyLeft applies the edits that were left; they win over what others have changed. */
  applyLeft(): void {
    this.unsaved?.apply(this.state.getState().left);
    this.set({ left: [] });
  }

  discardLeft(): void {
    void forgetEdits(this.state.getState().left.map(({ key }) => key));
    this.set({ left: [] });
  }

  /** setLock keeps this person from editing on this screen, and says why. */
  setLock(lock: string | null): void {
    this.set({ lock });
  }

  /** rename gives something another name, and everything that refers to it. */
  async rename(what: Name, to: string): Promise<void> {
    const ask = async (): Promise<Edit[] | null> => (await this.live?.renameEdits(what, to)) ?? null;
    this.set({ leftover: await rename(this.document, ask, what, to) });
  }

  dismissLeftover(): void {
    this.set({ leftover: null });
  }

  /** lossy reports whether leaving now would lose edits. */
  lossy(): boolean {
    const { save } = this.state.getState();
    return save === "conflict" || save === "refused" || (this.unsaved?.lossy() ?? false);
  }

  /** reload shows what the server has. */
  async reload(): Promise<void> {
    const { definition, tag } = await this.backend.load();
    if (this.over) return;
    this.tag = tag;
    writeDefinition(this.document.doc, definition, this);
    this.set({ save: "saved", refusal: null });
  }

  /** overwrite saves what is here in spite of what others have saved. */
  async overwrite(): Promise<void> {
    this.tag = null;
    await this.save();
  }

  /**
   * flush waits until the server has every edit made here. It fails with a sentence when
   * the server cannot have them, so that nobody runs an older definition.
   */
  async flush(): Promise<void> {
    const { ready, live } = this.state.getState();
    if (!ready) throw new Error("The workflow is still loading. Try again in a moment.");
    if (!this.state.getState().canEdit) return;
    if (live) await this.stored();
    else await this.save();
    const { save, refusal } = this.state.getState();
    if (save === "saved") return;
    throw new Error(
      {
        offline:
          "The server can't be reached. Your changes are saved on this device; try again when you're back online.",
        conflict: "Someone else saved this workflow, so your changes aren't saved. Decide which to keep first.",
        refused: refusal ?? "Your latest changes can't be saved.",
        saving: "Your latest changes haven't reached the server yet. Try again in a moment.",
        opening: "The workflow is still loading. Try again in a moment.",
      }[save],
    );
  }

  /** stored waits until the room has stored everything, or cannot be reached. */
  private stored(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        stop();
        resolve();
      };
      const timer = setTimeout(done, storeTimeout);
      const stop = this.state.subscribe(({ save }) => {
        if (save !== "saving") done();
      });
      if (this.state.getState().save !== "saving") done();
    });
  }

  private saveLater(pause: number): void {
    clearTimeout(this.saveTimer);
    if (!this.over) this.saveTimer = setTimeout(() => void this.save(), pause);
  }

  /** save sends what has changed, after a save that is under way. */
  private save(): Promise<void> {
    clearTimeout(this.saveTimer);
    this.saving = this.saving.then(() => this.put());
    return this.saving;
  }

  private async put(): Promise<void> {
    const { save } = this.backend;
    const { ready, live, canEdit, save: state } = this.state.getState();
    if (!save || !ready || live || !canEdit || state === "saved") return;
    const before = this.changes;
    try {
      this.tag = await save(this.document.definition(), this.tag);
      this.set({ save: this.changes === before ? "saved" : "saving", refusal: null });
      if (this.changes === before) this.unsaved?.stored();
      else this.saveLater(savePause);
    } catch (error) {
      const status = error instanceof ApiFailure ? error.status : 0;
      if (status === 412) this.set({ save: "conflict" });
      else if (status >= 400 && status < 500 && status !== 429) this.set({ save: "refused", refusal: sentence(error) });
      else {
        this.set({ save: "offline" });
        this.saveLater(saveAgain);
      }
    }
  }

  private set(change: Partial<SessionState>): void {
    if (this.over) return;
    const { canEdit, lock, graph } = { ...this.state.getState(), ...change };
    graph.document.editable = canEdit && lock === null;
    this.state.setState(change);
  }

  private end(ending: Ending): void {
    this.leave();
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
    void this.save();
    this.over = true;
    clearTimeout(this.openTimer);
    clearTimeout(this.saveTimer);
    this.leave();
    this.state.getState().graph.destroy();
    this.document.destroy();
  }
}
