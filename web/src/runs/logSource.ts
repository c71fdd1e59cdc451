// Reads a log into a buffer: its end first, earlier parts when they are asked
// for, what is new as it comes.
import { api, ask } from "../api/client.ts";
import { LogBuffer } from "./logBuffer.ts";

const page = 1 << 20;
const first = 4 * page; // what is read before anybody asks for more
const most = 64 * page; // what a tab holds at most

export interface LogState {
  /** Changes with the content; the buffer itself stays the same object. */
  version: number;
  loading: boolean;
  error: string | null;
  size: number;
}

export class LogSource {
  buffer = new LogBuffer();
  private state: LogState = { version: 0, loading: true, error: null, size: 0 };
  private readonly listeners = new Set<() => void>();
  private work: Promise<void> = Promise.resolve();
  private over = false;
  private drawing = false;

  constructor(
    private readonly runId: string,
    private readonly nodeId: string | null,
    private readonly shard = 0,
  ) {
    this.queue(() => this.begin());
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  now = (): LogState => this.state;

  destroy(): void {
    this.over = true;
    this.listeners.clear();
  }

  private queue(task: () => Promise<void>): Promise<void> {
    this.work = this.work.then(async () => {
      if (this.over) return;
      try {
        await task();
        this.set({ loading: false, error: null });
      } catch (error) {
        this.set({ loading: false, error: error instanceof Error ? error.message : String(error) });
      }
    });
    return this.work;
  }

  private read(offset: number, limit: number) {
    const query = { offset, limit, ...(this.nodeId && { nodeId: this.nodeId, shard: this.shard }) };
    return ask(api.GET("/api/runs/{id}/logs", { params: { path: { id: this.runId }, query } }));
  }

  private async begin(): Promise<void> {
    const { size } = await this.read(0, 1);
    this.buffer = new LogBuffer(Math.max(0, size - first));
    await this.forward(size);
    if (!this.buffer.complete && this.buffer.lines.length > 1) {
      // The first line may have begun earlier; it is read whole with what is before it.
      const next = this.buffer.offsets[1] ?? this.buffer.start;
      this.buffer.lines.shift();
      this.buffer.offsets.shift();
      this.buffer.start = next;
    }
  }

  private async forward(size: number): Promise<void> {
    while (this.buffer.end < size && !this.over) {
      const { text, nextOffset, size: now } = await this.read(this.buffer.end, page);
      if (nextOffset <= this.buffer.end) break;
      this.buffer.append(text);
      this.buffer.end = nextOffset;
      this.set({ size: now });
    }
  }

  /** heard takes what the stream tells: the text itself where it fits, else it is read. */
  heard(text: string, offset: number): void {
    if (this.nodeId === null && !this.state.loading && offset === this.buffer.end) {
      this.buffer.append(text);
      this.changed({ size: Math.max(this.state.size, this.buffer.end) });
      return;
    }
    void this.more();
  }

  private asked = false;

  /** more reads on from the end of what is here. */
  async more(): Promise<void> {
    if (this.asked) return;
    this.asked = true;
    await new Promise((resolve) => setTimeout(resolve, 300));
    this.asked = false;
    await this.queue(() => this.forward(Number.POSITIVE_INFINITY));
  }

  /** earlier reads a page before the beginning of what is here. */
  earlier(): Promise<void> {
    return this.queue(async () => {
      if (this.buffer.complete) return;
      this.set({ loading: true });
      const from = Math.max(0, this.buffer.start - page);
      await this.back(from);
    });
  }

  /** whole reads everything that a tab can hold, for searching. */
  whole(): Promise<void> {
    return this.queue(async () => {
      this.set({ loading: true });
      while (!this.buffer.complete && this.buffer.end - this.buffer.start < most && !this.over)
        await this.back(Math.max(0, this.buffer.start - page));
    });
  }

  private async back(from: number): Promise<void> {
    let text = "";
    let at = from;
    while (at < this.buffer.start) {
      const part = await this.read(at, this.buffer.start - at);
      if (part.nextOffset <= at) break;
      text += part.text;
      at = part.nextOffset;
    }
    this.buffer.prepend(text, from);
    this.set({});
  }

  private set(change: Partial<LogState>): void {
    if (this.over) return;
    this.state = { ...this.state, ...change, version: this.state.version + 1 };
    for (const listener of this.listeners) listener();
  }

  /** changed draws what came at most once a frame, however much that was. */
  private changed(change: Partial<LogState>): void {
    Object.assign(this.state, change);
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      this.set({});
    });
  }
}
