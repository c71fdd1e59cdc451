import { expect, test } from "vitest";
import { plain, spans } from "./ansi.ts";
import { found, LogBuffer } from "./logBuffer.ts";

test("colours become spans, other escapes vanish", () => {
  expect(spans("plain")).toEqual([{ text: "plain", className: "" }]);
  expect(spans("\x1b[1;31mred\x1b[0m then \x1b[38;5;2mgreen\x1b[39m\x1b[2K")).toEqual([
    { text: "red", className: "text-danger font-bold" },
    { text: " then ", className: "" },
    { text: "green", className: "text-ok" },
  ]);
  expect(plain("\x1b]0;title\x07\x1b[32mok\x1b[m")).toBe("ok");
  expect(spans("\x1b[38;2;1;2;3mtrue\x07 colour")[0]).toEqual({ text: "true colour", className: "" });
});

test("a progress bar that overwrites itself shows how it ended", () => {
  expect(plain("10%\r50%\r100%\r")).toBe("100%");
});

test("lines keep the byte they begin at, whatever is loaded first", () => {
  const whole = "één\nzwei\n\ndrei 🎉\nvier";
  const bytes = new TextEncoder().encode(whole);
  const cut = 7; // in the middle of a line
  const text = (from: number, to?: number) => new TextDecoder().decode(bytes.slice(from, to));
  const buffer = new LogBuffer(cut);
  buffer.append(text(cut, cut + 4));
  buffer.append(text(cut + 4));
  const before = new LogBuffer();
  before.append(text(0, cut));
  buffer.prepend(before);
  const straight = new LogBuffer();
  straight.append(whole);
  expect(buffer.lines).toEqual(["één", "zwei", "", "drei 🎉", "vier"]);
  expect(buffer.lines).toEqual(straight.lines);
  expect(buffer.offsets).toEqual(straight.offsets);
  expect(buffer.end).toBe(bytes.length);
  expect(buffer.complete).toBe(true);
  for (const [line, offset] of buffer.offsets.entries()) expect(buffer.lineAt(offset)).toBe(line);
});

test("a buffer takes more lines than a call takes arguments", () => {
  const buffer = new LogBuffer(600_000);
  buffer.append("end\n");
  const before = new LogBuffer();
  before.append("x\n".repeat(300_000));
  buffer.prepend(before);
  expect(buffer.lines).toHaveLength(300_001);
  expect(buffer.lines.at(-1)).toBe("end");
});

test("lines behind a gap keep their offsets in the whole log", () => {
  const buffer = new LogBuffer();
  buffer.append("first\n", 6);
  buffer.append("[90 bytes are missing]\n", 96);
  buffer.append("last\n");
  expect(buffer.offsets).toEqual([0, 6, 96]);
  expect(buffer.end).toBe(101);
});

test("a line that grows stays one line", () => {
  const buffer = new LogBuffer();
  for (const part of ["a", "b", "\n", "c\n", "d"]) buffer.append(part);
  expect(buffer.lines).toEqual(["ab", "c", "d"]);
});

test("searching looks through colours, and ignores case", () => {
  expect(found(["an \x1b[31mErr\x1b[0mor", "fine", "ERROR"], "error")).toEqual([0, 2]);
  expect(found(["x"], "")).toEqual([]);
});
