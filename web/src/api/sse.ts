// Server-sent events over fetch: unlike EventSource it sends headers, takes a
// POST, and says why it failed.

export interface Frame {
  id: string | null;
  data: string;
}

/** frames reads an event stream to its end. It calls heard for whatever comes, also for comments, which are no frames. */
export async function* frames(body: ReadableStream<Uint8Array>, heard = () => {}): AsyncGenerator<Frame> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new FrameParser();
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** FrameParser cuts text that arrives in any pieces into frames. */
export class FrameParser {
  private rest = "";
  private data: string[] = [];
  private id: string | null = null;

  push(text: string): Frame[] {
    const out: Frame[] = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line, out);
    return out;
  }

  private line(line: string, out: Frame[]): void {
    if (line === "") {
      if (this.data.length > 0) out.push({ id: this.id, data: this.data.join("\n") });
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment: the heartbeat
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    if (field === "id") this.id = value;
  }
}
