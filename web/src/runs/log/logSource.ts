// Reads a log into a buffer: the end first, earlier parts on request,
// and additions as they arrive.
import { type Api, ask } from "../../api/client.ts";
import { count } from "../../ui/format.ts";
import { LogBuffer } from "./logBuffer.ts";

const page = 1 << 20;
const first = 4 * page; // what is read before anybody asks for more
const most = 64 * page; // what a tab holds at most

/** LogTarget is a line by its number, from 1, or by a byte offset where the beginning of the log is not loaded. */
export type LogTarget = { line: number } | { byte: number };

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
  /** Whether text that follows the buffer waits until somebody asks for it. */
  private waits = false;

  constructor(
    private readonly api: Api,
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

  /** later counts the bytes behind the loaded part that are read on request only. */
  get later(): number {
    return this.waits ? Math.max(0, this.state.size - this.buffer.end) : 0;
  }

  /** indexOf returns the index of a line among those loaded; null where it is not loaded, or cannot be counted. */
  indexOf(target: LogTarget): number | null {
    const { buffer } = this;
    if ("byte" in target)
      return target.byte < buffer.start || target.byte >= buffer.end ? null : buffer.lineAt(target.byte);
    return buffer.complete && target.line <= buffer.lines.length ? target.line - 1 : null;
  }

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
    return ask(this.api.GET("/api/runs/{id}/logs", { params: { path: { id: this.runId }, query } }));
  }

  private async begin(): Promise<void> {
    const { size } = await this.read(0, 1);
    this.waits = false;
    this.buffer = new LogBuffer(Math.max(0, size - first));
    await this.forward(size, true);
    if (!this.buffer.complete && this.buffer.lines.length > 1) {
      // The first line may be incomplete: it is dropped, and read again with the text before it.
      const next = this.buffer.offsets[1] ?? this.buffer.start;
      this.buffer.lines.shift();
      this.buffer.offsets.shift();
      this.buffer.start = next;
    }
  }

  /**
   * forward reads from the end of the buffer up to size. An empty buffer inside a gap is moved behind the gap, whose
   * mark comes with the text before it.
   */
  private async forward(size: number, first = false): Promise<void> {
    while (this.buffer.end < size && !this.over) {
      const from = this.buffer.end;
      const { text, nextOffset, missing = 0, size: now } = await this.read(from, page);
      if (this.buffer.end !== from) continue; // the stream has delivered this text during the read
      if (nextOffset <= from) break;
      if (first && from === this.buffer.start && nextOffset - missing < from) {
        this.buffer = new LogBuffer(nextOffset);
        continue;
      }
      this.buffer.append(text, nextOffset);
      this.set({ size: now });
    }
  }

  /**
   * receive appends text from the stream if it continues the buffer; else the log is read. The text after it has the
   * offset next, which is larger if the log has a gap.
   */
  receive(text: string, offset: number, next = 0): void {
    if (this.nodeId === null && !this.state.loading && !this.waits && offset === this.buffer.end) {
      this.buffer.append(text, next);
      this.changed({ size: Math.max(this.state.size, this.buffer.end) });
      return;
    }
    void this.more();
  }

  private asked = false;

  /** more reads what follows the loaded part. */
  async more(): Promise<void> {
    if (this.asked) return;
    this.asked = true;
    await new Promise((resolve) => setTimeout(resolve, 300));
    this.asked = false;
    await this.queue(async () => {
      if (this.waits) this.set({ size: (await this.read(this.buffer.end, 1)).size });
      else await this.forward(Number.POSITIVE_INFINITY);
    });
  }

  /** after reads the page behind the loaded part, where that waits. */
  after(): Promise<void> {
    return this.queue(async () => {
      this.set({ loading: true });
      await this.forward(Math.min(this.buffer.end + page, this.state.size));
      if (this.buffer.end >= this.state.size) this.waits = false;
    });
  }

  /** latest reads the end of the log again, where the text before it waits. */
  latest(): Promise<void> {
    return this.queue(async () => {
      if (this.waits) await this.begin();
    });
  }

  /** upTo reads what is needed to count to a line: all that comes before it. */
  upTo(line: number): Promise<void> {
    return this.queue(async () => {
      this.set({ loading: true });
      if (this.state.size <= most) return this.allBefore();
      const { start } = this.buffer;
      const before = new LogBuffer();
      while (before.end < Math.min(start, most) && before.lines.length <= line && !this.over) {
        const { text, nextOffset } = await this.read(before.end, page);
        if (nextOffset <= before.end) break;
        before.append(text, nextOffset);
      }
      if (before.lines.length <= line)
        throw new Error(`Line ${count(line)} is too far into this log to be shown here.`);
      this.buffer = before;
      this.waits = true;
    });
  }

  /** earlier reads the page before the loaded part. */
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
      if (this.waits) await this.begin();
      await this.allBefore();
    });
  }

  private async allBefore(): Promise<void> {
    while (!this.buffer.complete && this.buffer.end - this.buffer.start < most && !this.over)
      await this.back(Math.max(0, this.buffer.start - page));
  }

  /** back reads from an offset up to the start of the buffer; from a page before a gap if the offset lies in it. */
  private async back(from: number): Promise<void> {
    const { start } = this.buffer;
    let before = new LogBuffer(from);
    while (before.end < start && !this.over) {
      const at = before.end;
      const { text, nextOffset, missing = 0 } = await this.read(at, Math.min(page, start - at));
      if (nextOffset <= at) break;
      if (at === from && nextOffset - missing < from) {
        from = Math.max(0, nextOffset - missing - page);
        before = new LogBuffer(from);
        continue;
      }
      before.append(text, nextOffset);
    }
    this.buffer.prepend(before);
    this.set({});
  }

  private set(change: Partial<LogState>): void {
    if (this.over) return;
    this.state = { ...this.state, ...change, version: this.state.version + 1 };
    for (const listener of this.listeners) listener();
  }

  /** changed notifies listeners at most once a frame. */
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
