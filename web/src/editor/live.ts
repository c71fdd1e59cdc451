// The connection to the editor room: the shared document over y-websocket, with what
// we add to it: which changes are stored, tokens that are renewed, problems of the
// definition, and closed rooms explained.
import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";
import type { Awareness } from "y-protocols/awareness";
import { WebsocketProvider } from "y-websocket";
import type * as Y from "yjs";
import { isFailure, isRecord } from "../api/failure.ts";
import type { Edit, Problem } from "../definition/model.ts";
import type { Name } from "../definition/references.ts";

/** Pass lets somebody into an editor room. */
export interface Pass {
  token: string;
  room: string;
  collabUrl: string;
  role: "editor" | "viewer";
  expiresAt: string;
}

export type Ending = "revoked" | "deleted" | "too-large" | "storage-full" | "broken";

export interface Findings {
  problems: Problem[];
  warnings: Problem[];
}

export interface LiveEvents {
  onSynced: () => void;
  onState: (state: "live" | "away", unsaved: boolean) => void;
  /** This copy of the document must be thrown away; why may be a sentence for the person. */
  onReset: (why: string) => void;
  onEnded: (ending: Ending) => void;
  /** The definition has followed the document. */
  onFindings: (findings: Findings) => void;
  /** The room could not be reached even once. */
  onUnreachable: () => void;
}

// Our own messages, beside those of y-websocket; see docs/sharing.md.
const kindStored = 100;
const kindSynced = 101;
const kindRename = 102;

const endings: Record<number, Ending> = { 4402: "storage-full", 4404: "deleted", 4413: "too-large" };
const attempts = 4;
const renameTimeout = 10_000;

/** CountingSocket counts the frames that carry changes: the server says how many of them it has stored. */
class CountingSocket extends WebSocket {
  changes = 0;
  override send(data: Parameters<WebSocket["send"]>[0]): void {
    if (data instanceof Uint8Array && data[0] === 0 && (data[1] === 1 || data[1] === 2)) this.changes++;
    super.send(data);
  }
}

export class Live {
  private readonly provider: WebsocketProvider;
  private stored = 0;
  private synced = false;
  private failures = 0;
  private renewal: ReturnType<typeof setTimeout> | undefined;
  private over = false;
  private requests = 0;
  private readonly renames = new Map<number, (edits: Edit[] | null) => void>();

  constructor(
    doc: Y.Doc,
    awareness: Awareness,
    private pass: Pass,
    private readonly renew: () => Promise<Pass>,
    private readonly events: LiveEvents,
  ) {
    this.provider = new WebsocketProvider(`${pass.collabUrl}/editor`, pass.room, doc, {
      awareness,
      params: { token: pass.token, ack: "1" },
      disableBc: true, // between tabs it would bypass the server and its rules
      maxBackoffTime: 15_000,
      WebSocketPolyfill: CountingSocket,
    });
    this.provider.messageHandlers[kindStored] = (_encoder, decoder) => {
      this.stored = decoding.readVarUint(decoder);
      this.report();
    };
    this.provider.messageHandlers[kindSynced] = (_encoder, decoder) => {
      const news: unknown = JSON.parse(decoding.readVarString(decoder));
      if (isRecord(news)) events.onFindings({ problems: listOf(news.problems), warnings: listOf(news.warnings) });
    };
    this.provider.messageHandlers[kindRename] = (_encoder, decoder) => {
      const answer: unknown = JSON.parse(decoding.readVarString(decoder));
      if (isRecord(answer)) this.renames.get(Number(answer.request))?.(listOf(answer.edits));
    };
    this.provider.on("status", ({ status }) => {
      if (status === "connecting") this.stored = 0;
      this.report();
    });
    this.provider.on("sync", (synced) => {
      this.failures = 0;
      if (synced && !this.synced) {
        this.synced = true;
        events.onSynced();
      }
      this.report();
    });
    this.provider.on("connection-close", () => void this.closed());
    this.provider.on("closed", ({ code, reason }) => {
      // Access that was taken back may have become another role: asking again tells.
      if (code === 4409 || code === 4401 || code === 4403) this.end(() => events.onReset(reason));
      else this.end(() => events.onEnded(endings[code] ?? "broken"));
    });
    doc.on("update", this.report);
    this.scheduleRenewal();
  }

  private connected(): boolean {
    return this.provider.wsconnected && this.provider.synced;
  }

  /** report tells whether everything made here is stored. */
  private report = (): void => {
    if (this.over) return;
    const socket = this.provider.ws as CountingSocket | null;
    // What was typed this moment is sent before this is looked at. A socket
    // begins with one change of its own: what the server lacked.
    const sent = Math.max(socket?.changes ?? 0, 1);
    this.events.onState(this.connected() ? "live" : "away", this.pass.role === "editor" && sent > this.stored);
  };

  /**
   * renameEdits asks the server for the edits that make everything say another name. It
   * returns null when nobody answers.
   */
  renameEdits(what: Name, to: string): Promise<Edit[] | null> {
    const { ws } = this.provider;
    if (this.over || !ws || !this.connected()) return Promise.resolve(null);
    const request = ++this.requests;
    return new Promise((resolve) => {
      const answered = (edits: Edit[] | null) => {
        clearTimeout(timer);
        this.renames.delete(request);
        resolve(edits);
      };
      const timer = setTimeout(() => answered(null), renameTimeout);
      this.renames.set(request, answered);
      const encoder = encoding.createEncoder();
      encoding.writeVarUint(encoder, kindRename);
      encoding.writeVarString(encoder, JSON.stringify({ request, node: "", ...what, to }));
      ws.send(encoding.toUint8Array(encoder));
    });
  }

  private async closed(): Promise<void> {
    for (const answered of [...this.renames.values()]) answered(null);
    if (this.over) return;
    this.failures++;
    if (!this.synced && this.failures >= attempts) return this.end(() => this.events.onUnreachable());
    // The pass may have expired or been revoked; the next attempt needs a valid one.
    await this.refresh();
  }

  private async refresh(): Promise<void> {
    try {
      this.pass = await this.renew();
      this.provider.params = { token: this.pass.token, ack: "1" };
      this.scheduleRenewal();
    } catch (error) {
      if (!isFailure(error)) return;
      if (error.status === 404) this.end(() => this.events.onEnded("deleted"));
      else if (error.status === 401 || error.status === 403) this.end(() => this.events.onEnded("revoked"));
    }
  }

  /** scheduleRenewal renews the pass some minutes before it ends. */
  private scheduleRenewal(): void {
    clearTimeout(this.renewal);
    const left = Date.parse(this.pass.expiresAt) - Date.now();
    const wait = Math.min(Math.max(left - 5 * 60_000, left / 2, 10_000), 2 ** 31 - 1);
    this.renewal = setTimeout(() => void this.refresh(), wait);
  }

  private end(then: () => void): void {
    if (this.over) return;
    this.destroy();
    then();
  }

  destroy(): void {
    this.over = true;
    clearTimeout(this.renewal);
    for (const answered of [...this.renames.values()]) answered(null);
    this.provider.doc.off("update", this.report);
    this.provider.destroy();
  }
}

function listOf<T>(value: unknown): T[] {
  return Array.isArray(value) ? (value as T[]) : [];
}
