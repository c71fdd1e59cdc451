// The upload queue: three at a time, since a browser opens six connections to a server and
// pages need some of them. Each is signed only when its turn comes, because a signed
// address lives five minutes. Each file belongs to the team it was added for. It knows
// nothing of React.

import { folderType } from "./dropped.ts";
import { largeFrom } from "./large.ts";

export type UploadState = "waiting" | "sending" | "done" | "failed" | "cancelled";

/** Upload is one file on its way to a team. */
export interface Upload<Team> {
  readonly id: number;
  readonly team: Team;
  readonly file: File;
  readonly state: UploadState;
  readonly sent: number;
  readonly error: string | null;
  /** Whether the same file may work when it is tried again. */
  readonly retryable: boolean;
  /** Where it is kept, once it is. */
  readonly key: string | null;
}

const places: Record<UploadState, number> = { failed: 0, sending: 1, waiting: 2, done: 3, cancelled: 3 };

/** inOrder puts first what failed, then what is under way: hundreds of small files that have arrived would hide both. */
export const inOrder = <Team>(uploads: readonly Upload<Team>[]): Upload<Team>[] =>
  uploads.toSorted((a, b) => places[a.state] - places[b.state]);

export interface Totals<Team> {
  uploads: readonly Upload<Team>[];
  going: number;
  sent: number;
  size: number;
  bytesPerSecond: number;
}

export interface Transport<Team> {
  sign: (team: Team, file: File) => Promise<{ url: string; key: string }>;
  put: (url: string, file: File, onSent: (bytes: number) => void, signal: AbortSignal) => Promise<void>;
  /** Sends a file that is too large for one request; without it, all go by one. */
  large?: (team: Team, file: File, onSent: (bytes: number) => void, signal: AbortSignal) => Promise<string>;
  /** Told when a team has one more file. */
  stored?: (team: Team) => void;
  /** What a failure says, and whether another try may help. */
  explain: (error: unknown) => { message: string; retryable: boolean };
  now?: () => number;
}

const speedWindow = 5000;

export class UploadQueue<Team> {
  private uploads: readonly Upload<Team>[] = [];
  private readonly stops = new Map<number, AbortController>();
  private readonly waiters = new Map<number, (upload: Upload<Team>) => void>();
  private readonly listeners = new Set<() => void>();
  private samples: { at: number; sent: number }[] = [];
  private arrived = 0; // bytes that went over the wire, retries included
  private totals: Totals<Team> = { uploads: [], going: 0, sent: 0, size: 0, bytesPerSecond: 0 };
  private next = 1;

  constructor(
    private readonly transport: Transport<Team>,
    private readonly parallel = 3,
  ) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly now = (): Totals<Team> => this.totals;

  /** add queues files for a team; each promise gives its upload once it has ended, however. */
  add(team: Team, files: File[]): Promise<Upload<Team>>[] {
    const added = files.map(
      (file): Upload<Team> => ({
        id: this.next++,
        team,
        file,
        state: "waiting",
        sent: 0,
        error: null,
        retryable: false,
        key: null,
      }),
    );
    const ends = added.map((upload) => new Promise<Upload<Team>>((resolve) => this.waiters.set(upload.id, resolve)));
    this.change([...this.uploads, ...added]);
    this.work();
    return ends;
  }

  cancel(id: number): void {
    const upload = this.find(id);
    if (upload?.state !== "waiting" && upload?.state !== "sending") return;
    this.stops.get(id)?.abort();
    this.end(id, { state: "cancelled", error: null, retryable: true });
  }

  cancelAll(): void {
    for (const upload of this.uploads) this.cancel(upload.id);
  }

  retry(id: number): void {
    const upload = this.find(id);
    if (upload?.state !== "failed" && upload?.state !== "cancelled") return;
    this.patch(id, { state: "waiting", sent: 0, error: null });
    this.work();
  }

  /** clear forgets what has ended. */
  clear(): void {
    this.change(this.uploads.filter((upload) => upload.state === "waiting" || upload.state === "sending"));
  }

  private work(): void {
    while (this.stops.size < this.parallel) {
      const upload = this.uploads.find((each) => each.state === "waiting");
      if (!upload) return;
      void this.send(upload);
    }
  }

  private async send({ id, team, file }: Upload<Team>): Promise<void> {
    const stop = new AbortController();
    this.stops.set(id, stop);
    this.patch(id, { state: "sending" });
    try {
      let last: number | null = null;
      const key = await this.deliver(
        team,
        file,
        (sent) => {
          // What arrived before this try is no speed of it.
          this.sample(last === null && file.size > largeFrom ? 0 : sent - (last ?? 0));
          last = sent;
          if (!stop.signal.aborted) this.patch(id, { sent });
        },
        stop.signal,
      );
      if (stop.signal.aborted) return;
      this.end(id, { state: "done", sent: file.size, key });
      this.transport.stored?.(team);
    } catch (error) {
      if (stop.signal.aborted) return;
      const { message, retryable } = this.transport.explain(error);
      this.end(id, { state: "failed", error: message, retryable });
    } finally {
      if (this.stops.get(id) === stop) this.stops.delete(id); // not that of another try
      this.work();
    }
  }

  /** deliver sends a file by one request or in parts, and gives its key. */
  private async deliver(team: Team, file: File, onSent: (bytes: number) => void, signal: AbortSignal): Promise<string> {
    if (this.transport.large && (file.size > largeFrom || file.type === folderType))
      return this.transport.large(team, file, onSent, signal);
    const { url, key } = await this.transport.sign(team, file);
    if (!signal.aborted) await this.transport.put(url, file, onSent, signal);
    return key;
  }

  private sample(bytes: number): void {
    const at = (this.transport.now ?? Date.now)();
    this.arrived += bytes;
    this.samples = [...this.samples.filter((each) => at - each.at < speedWindow), { at, sent: this.arrived }];
  }

  private speed(): number {
    const first = this.samples[0];
    const last = this.samples.at(-1);
    if (!first || !last || last.at === first.at) return 0;
    return ((last.sent - first.sent) / (last.at - first.at)) * 1000;
  }

  private end(id: number, change: Partial<Upload<Team>>): void {
    this.patch(id, change);
    const upload = this.find(id);
    if (upload) this.waiters.get(id)?.(upload);
    this.waiters.delete(id);
  }

  private find(id: number): Upload<Team> | undefined {
    return this.uploads.find((each) => each.id === id);
  }

  private patch(id: number, change: Partial<Upload<Team>>): void {
    this.change(this.uploads.map((each) => (each.id === id ? { ...each, ...change } : each)));
  }

  private change(uploads: readonly Upload<Team>[]): void {
    this.uploads = uploads;
    const counted = uploads.filter((each) => each.state !== "failed" && each.state !== "cancelled");
    const going = uploads.filter((each) => each.state === "waiting" || each.state === "sending").length;
    if (going === 0) this.samples = [];
    this.totals = {
      uploads,
      going,
      sent: counted.reduce((sum, each) => sum + each.sent, 0),
      size: counted.reduce((sum, each) => sum + each.file.size, 0),
      bytesPerSecond: this.speed(),
    };
    for (const listener of this.listeners) listener();
  }
}
