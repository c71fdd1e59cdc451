// The editor room: the shared document over y-websocket, with what we add to
// it: knowing what is stored, passes that are renewed, and endings that people
// understand.
import * as decoding from "lib0/decoding";
import type { Awareness } from "y-protocols/awareness";
import { WebsocketProvider } from "y-websocket";
import type * as Y from "yjs";
import type { Schemas } from "../api/client.ts";
import { isFailure, isRecord } from "../api/failure.ts";

export interface Pass {
  token: string;
  room: string;
  collabUrl: string;
  role: "editor" | "viewer";
  expiresAt: string;
}

export type Ending = "revoked" | "deleted" | "too-large" | "broken";

export interface LiveEvents {
  onSynced: () => void;
  onState: (state: "live" | "away", unsaved: boolean) => void;
  /** This copy of the document fits no longer, or this person's pass: join anew. */
  /** The copy must be thrown away; why may be a sentence for the person. */
  onReset: (why: string) => void;
  onEnded: (ending: Ending) => void;
  /** The definition has followed the document; this is what is wrong with it. */
  onSettled: (problems: Schemas["Problem"][]) => void;
  /** The room could not be reached even once. */
  onUnreachable: () => void;
}

const kindStored = 100;
const kindSettled = 101;
const endings: Record<number, Ending> = { 4404: "deleted", 4413: "too-large" };
const tries = 4;

/** Counts the frames that carry changes: the server tells how many of them it has stored. */
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
      disableBc: true, // between tabs it would pass by the server, and by its rules
      maxBackoffTime: 15_000,
      WebSocketPolyfill: CountingSocket,
    });
    this.provider.messageHandlers[kindStored] = (_encoder, decoder) => {
      this.stored = decoding.readVarUint(decoder);
      this.tell();
    };
    this.provider.messageHandlers[kindSettled] = (_encoder, decoder) => {
      const news: unknown = JSON.parse(decoding.readVarString(decoder));
      if (isRecord(news) && Array.isArray(news.problems)) events.onSettled(news.problems as Schemas["Problem"][]);
    };
    this.provider.on("status", ({ status }) => {
      if (status === "connecting") this.stored = 0;
      this.tell();
    });
    this.provider.on("sync", (synced) => {
      this.failures = 0;
      if (synced && !this.synced) {
        this.synced = true;
        events.onSynced();
      }
      this.tell();
    });
    this.provider.on("connection-close", () => void this.closed());
    this.provider.on("closed", ({ code, reason }) => {
      // Access that was taken back may have become another role: asking again tells.
      if (code === 4409 || code === 4401 || code === 4403) this.end(() => events.onReset(reason));
      else this.end(() => events.onEnded(endings[code] ?? "broken"));
    });
    doc.on("update", this.tell);
    this.plan();
  }

  /** tell says whether everything made here is stored. */
  private tell = (): void => {
    if (this.over) return;
    const socket = this.provider.ws as CountingSocket | null;
    const live = this.provider.wsconnected && this.provider.synced;
    // What was typed this moment is sent before this is looked at. A socket
    // begins with one change of its own: what the server lacked.
    const sent = Math.max(socket?.changes ?? 0, 1);
    this.events.onState(live ? "live" : "away", this.pass.role === "editor" && sent > this.stored);
  };

  private async closed(): Promise<void> {
    if (this.over) return;
    this.failures++;
    if (!this.synced && this.failures >= tries) return this.end(() => this.events.onUnreachable());
    // The pass may have run out or been taken back; the next try needs a good one.
    await this.refresh();
  }

  private async refresh(): Promise<void> {
    try {
      this.pass = await this.renew();
      this.provider.params = { token: this.pass.token, ack: "1" };
      this.plan();
    } catch (error) {
      if (!isFailure(error)) return;
      if (error.status === 404) this.end(() => this.events.onEnded("deleted"));
      else if (error.status === 401 || error.status === 403) this.end(() => this.events.onEnded("revoked"));
    }
  }

  /** plan renews the pass some minutes before it ends. */
  private plan(): void {
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
    this.provider.doc.off("update", this.tell);
    this.provider.destroy();
  }
}
