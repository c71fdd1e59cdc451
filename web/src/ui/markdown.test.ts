import { expect, test } from "vitest";
import { blocks, inline } from "./markdown.ts";

test("blocks are told apart", () => {
  const source =
    "# Title\n\nSome *text* here\nand on.\n\n- one\n- two\n  more\n\n3. three\n\n```bash\nls | wc\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> said\n\n---\n";
  expect(blocks(source).map((block) => block.kind)).toEqual([
    "heading",
    "paragraph",
    "list",
    "list",
    "code",
    "table",
    "quote",
    "rule",
  ]);
  expect(blocks("3. three")[0]).toMatchObject({ ordered: true, start: 3 });
});

test("code that is still being written is code", () => {
  expect(blocks("Look:\n```python\nprint(1)")[1]).toEqual({ kind: "code", language: "python", text: "print(1)" });
});

test("spans are read, and stars between words are left", () => {
  expect(inline("a **b** and *c* `d*e*` 2*3*4")).toEqual([
    { kind: "text", text: "a " },
    { kind: "strong", text: "b" },
    { kind: "text", text: " and " },
    { kind: "em", text: "c" },
    { kind: "text", text: " " },
    { kind: "code", text: "d*e*" },
    { kind: "text", text: " 2*3*4" },
  ]);
});

test("only web addresses become links", () => {
  expect(inline("[x](javascript:alert(1))").every((span) => span.kind === "text")).toBe(true);
  expect(inline("see https://a.example/b.")[1]).toEqual({
    kind: "link",
    text: "https://a.example/b",
    href: "https://a.example/b",
  });
});

test("anything ends, whatever it is made of", () => {
  const pieces = ["`", "```", "*", "**", "|", "-", "# ", "> ", "[", "](", ")", "\n", " ", "1. ", "x"];
  let seed = 7;
  for (let round = 0; round < 3000; round++) {
    let text = "";
    for (let length = 0; length < 14; length++) {
      seed = (seed * 1103515245 + 12345) & 0x7fffffff;
      text += pieces[seed % pieces.length];
    }
    expect(Array.isArray(blocks(text)), JSON.stringify(text)).toBe(true);
  }
});
