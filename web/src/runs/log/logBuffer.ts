// The loaded part of a log: a range of bytes as lines, which grows
// at both ends. The offset of each line is that of the whole log, so that a
// link to it stays right whatever else is loaded.
import { plain } from "./ansi.ts";

const encoder = new TextEncoder();

export class LogBuffer {
  lines: string[] = [];
  offsets: number[] = [];
  /** The loaded range of bytes. */
  start = 0;
  end = 0;
  private open = false; // the last line has no end yet

  constructor(at = 0) {
    this.start = at;
    this.end = at;
  }

  get complete(): boolean {
    return this.start === 0;
  }

  /** append adds text at the end. The next text has the offset next, which is larger if the log has a gap. */
  append(text: string, next = 0): void {
    if (text === "") {
      this.end = Math.max(this.end, next);
      return;
    }
    const parts = text.split("\n");
    let at = this.end;
    parts.forEach((part, index) => {
      const last = index === parts.length - 1;
      if (index === 0 && this.open) this.lines[this.lines.length - 1] += part;
      else if (!last || part !== "") {
        this.lines.push(part);
        this.offsets.push(at);
      }
      at += encoder.encode(part).length + (last ? 0 : 1);
    });
    this.open = !text.endsWith("\n");
    this.end = next || at;
  }

  /** prepend adds the lines of a buffer that ends where this one starts. */
  prepend(before: LogBuffer): void {
    // The first line of the buffer may continue the last line of the text.
    if (before.open && this.lines.length > 0) {
      this.lines[0] = (before.lines.pop() ?? "") + this.lines[0];
      this.offsets[0] = before.offsets.pop() ?? before.start;
    }
    this.lines = before.lines.concat(this.lines);
    this.offsets = before.offsets.concat(this.offsets);
    this.start = before.start;
  }

  /** lineAt is the line that holds a byte. */
  lineAt(offset: number): number {
    let [low, high] = [0, this.offsets.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.offsets[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** found lists the lines that contain the words, ignoring case. */
export function found(lines: readonly string[], words: string): number[] {
  const wanted = words.toLowerCase();
  if (wanted === "") return [];
  const out: number[] = [];
  for (const [at, line] of lines.entries()) if (plain(line).toLowerCase().includes(wanted)) out.push(at);
  return out;
}
