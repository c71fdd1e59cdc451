import { expect, test } from "vitest";
import { kindOf, rows } from "./preview.ts";

test("what can be shown is told by name or type", () => {
  expect(kindOf("plot.PNG", "application/octet-stream")).toBe("image");
  expect(kindOf("counts.tsv", "text/plain")).toBe("table");
  expect(kindOf("report.html", "")).toBe("html");
  expect(kindOf("reads.fq", "application/octet-stream")).toBe("text");
  expect(kindOf("picture.svg", "image/svg+xml")).toBe("text");
  expect(kindOf("align.bam", "application/octet-stream")).toBe("none");
});

test("quotes hold commas, line ends and quotes", () => {
  expect(rows('a,b\n"1,5","say ""hi""\nyou"\n', true)).toEqual([
    ["a", "b"],
    ["1,5", 'say "hi"\nyou'],
  ]);
});

test("a line that was cut off is left out", () => {
  expect(rows("a\tb\r\n1\t2\n3", false)).toEqual([
    ["a", "b"],
    ["1", "2"],
  ]);
  expect(rows("a,b\n1,2", true)).toHaveLength(2);
  expect(rows("x\n".repeat(500), true)).toHaveLength(200);
});
