// The part of a log that this tab holds: a stretch of bytes as lines, growing
// at both ends. Each line knows at which byte of the log it begins, so that a
// link to it stays right whatever else is loaded.
import { plain } from "./ansi.ts";

const encoder = new TextEncoder();

export class LogBuffer {
  readonly lines: string[] = [];
  readonly offsets: number[] = [];
  /** The stretch of bytes that is held. */
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

  /** append takes what follows. */
  append(text: string): void {
    if (text === "") return;
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
    this.end = at;
  }

  /** prepend takes what comes right before, from a byte on. */
  prepend(text: string, from: number): void {
    const before = new LogBuffer(from);
    before.append(text);
    // A line that was cut in two becomes one again.
    if (before.open && this.lines.length > 0) {
      this.lines[0] = (before.lines.pop() ?? "") + this.lines[0];
      this.offsets[0] = before.offsets.pop() ?? from;
    }
    this.lines.unshift(...before.lines);
    this.offsets.unshift(...before.offsets);
    this.start = from;
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

/** found is which lines hold some words, case aside. */
export function found(lines: readonly string[], words: string): number[] {
  const wanted = words.toLowerCase();
  if (wanted === "") return [];
  const out: number[] = [];
  for (const [at, line] of lines.entries()) if (plain(line).toLowerCase().includes(wanted)) out.push(at);
  return out;
}
