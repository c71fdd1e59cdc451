// The differences between two lists or two texts.

/** Hunk is a part that differs: a[start, end) became b[newStart, newEnd). */
export interface Hunk {
  start: number;
  end: number;
  newStart: number;
  newEnd: number;
}

const mostCells = 16_000_000;

/**
 * hunks lists where two lists differ, by their longest common part. Lists that are
 * too long to compare differ as a whole, but for what they begin and end with.
 */
export function hunks<T>(a: readonly T[], b: readonly T[], cells = mostCells): Hunk[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let tail = 0;
  while (tail < a.length - start && tail < b.length - start && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const [rows, columns] = [a.length - tail - start, b.length - tail - start];
  if (rows === 0 && columns === 0) return [];
  const whole = { start, end: start + rows, newStart: start, newEnd: start + columns };
  if (rows === 0 || columns === 0 || rows * columns > cells) return [whole];
  const width = columns + 1;
  const lengths = new Uint32Array((rows + 1) * width);
  const at = (row: number, column: number) => lengths[row * width + column] ?? 0;
  for (let row = rows - 1; row >= 0; row--) {
    for (let column = columns - 1; column >= 0; column--) {
      lengths[row * width + column] =
        a[start + row] === b[start + column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const found: Hunk[] = [];
  let [row, column] = [0, 0];
  while (row < rows || column < columns) {
    const [fromRow, fromColumn] = [row, column];
    while (
      (row < rows || column < columns) &&
      !(row < rows && column < columns && a[start + row] === b[start + column])
    ) {
      if (row < rows && (column === columns || at(row + 1, column) >= at(row, column + 1))) row++;
      else column++;
    }
    if (row > fromRow || column > fromColumn) {
      found.push({
        start: start + fromRow,
        end: start + row,
        newStart: start + fromColumn,
        newEnd: start + column,
      });
    }
    while (row < rows && column < columns && a[start + row] === b[start + column]) {
      row++;
      column++;
    }
  }
  return found;
}

/** TextEdit replaces a part of a text. Places are counted in UTF-16 code units, as JavaScript and Yjs do. */
export interface TextEdit {
  at: number;
  remove: number;
  insert: string;
}

const wordCells = 4_000_000;

/** textEdits lists the edits, in order, that make one text the other: whole words within the lines that differ. */
export function textEdits(before: string, after: string): TextEdit[] {
  if (before === after) return [];
  const [a, b] = [linesOf(before), linesOf(after)];
  const [starts, newStarts] = [offsets(a), offsets(b)];
  const edits: TextEdit[] = [];
  for (const hunk of hunks(a, b)) {
    const at = starts[hunk.start] ?? 0;
    const old = a.slice(hunk.start, hunk.end).join("");
    const now = after.slice(newStarts[hunk.newStart], newStarts[hunk.newEnd]);
    for (const edit of wordEdits(old, now)) edits.push({ ...edit, at: at + edit.at });
  }
  return edits;
}

function wordEdits(before: string, after: string): TextEdit[] {
  const [a, b] = [wordsOf(before), wordsOf(after)];
  const starts = offsets(a);
  return hunks(a, b, wordCells).map((hunk) => {
    const old = a.slice(hunk.start, hunk.end).join("");
    const now = b.slice(hunk.newStart, hunk.newEnd).join("");
    return trimmed({ at: starts[hunk.start] ?? 0, remove: old.length, insert: now }, old);
  });
}

/** trimmed leaves out what an edit would replace by the same characters. It never cuts a surrogate pair. */
function trimmed({ at, insert }: TextEdit, old: string): TextEdit {
  const [a, b] = [Array.from(old), Array.from(insert)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let tail = 0;
  while (tail < a.length - start && tail < b.length - start && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  return {
    at: at + a.slice(0, start).join("").length,
    remove: a.slice(start, a.length - tail).join("").length,
    insert: b.slice(start, b.length - tail).join(""),
  };
}

function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|./gsu) ?? [];
}

/** offsets lists where each part begins in their joined text, and where the text ends. */
function offsets(parts: readonly string[]): number[] {
  const all = [0];
  for (const part of parts) all.push((all.at(-1) ?? 0) + part.length);
  return all;
}
