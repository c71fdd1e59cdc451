import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { kindOf, rows, sorted, unpack, withHead } from "./preview.ts";

test("what can be shown is told by name or type", () => {
  expect(kindOf("plot.PNG", "application/octet-stream")).toBe("image");
  expect(kindOf("counts.tsv", "text/plain")).toBe("table");
  expect(kindOf("report.html", "")).toBe("html");
  expect(kindOf("reads.fq", "application/octet-stream")).toBe("text");
  expect(kindOf("picture.svg", "image/svg+xml")).toBe("image");
  expect(kindOf("notes.md", "text/plain")).toBe("markdown");
  expect(kindOf("paper.pdf", "")).toBe("pdf");
  expect(kindOf("look.ipynb", "application/json")).toBe("notebook");
  expect(kindOf("calls.vcf.gz", "application/gzip")).toBe("table");
  expect(kindOf("reads.fastq.gz", "application/gzip")).toBe("text");
  expect(kindOf("plot.png.gz", "application/gzip")).toBe("none");
  expect(kindOf("all.tar.gz", "application/gzip")).toBe("none");
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

test("the head of a packed file is unpacked, however it was cut", async () => {
  const text = Array.from({ length: 50_000 }, (_, at) => `line ${at} ${Math.sin(at)}`).join("\n");
  const whole = new Uint8Array(gzipSync(text));
  const read = async (bytes: Uint8Array<ArrayBuffer>) => new TextDecoder().decode(await unpack(bytes, 10_000));
  expect(await read(whole)).toBe(text.slice(0, 10_000));
  expect(text.startsWith(await read(whole.slice(0, 20_000)))).toBe(true);
  const twice = new Uint8Array([...gzipSync("one\n"), ...gzipSync("two\n")]); // as bgzip writes
  expect(await read(twice)).toContain("one\n");
  await expect(read(new Uint8Array([1, 2, 3]))).rejects.toThrow("gzip-compressed");
});

test("rows are sorted by value where there are numbers, and empty cells come last", () => {
  const list = [
    ["b", "10"],
    ["a", "9"],
    ["c", ""],
    ["d", "-1e3"],
    ["e", "n/a"],
  ];
  const names = (column: number, down: boolean) =>
    sorted(list, column, down)
      .map((row) => row[0])
      .join("");
  expect(names(0, false)).toBe("abcde");
  expect(names(1, false)).toBe("dabec");
  expect(names(1, true)).toBe("ebadc");
});

test("a first row with numbers is data, and its columns are named by their places", () => {
  const bed = [
    ["chr1", "100", "200"],
    ["chr2", "5", "9"],
  ];
  expect(withHead(bed)).toEqual({ head: ["Column 1", "Column 2", "Column 3"], body: bed });
  expect(withHead([["bird", "seen"], ...bed])).toEqual({ head: ["bird", "seen"], body: bed });
  expect(withHead([["bird", "2019", "2020"], ...bed]).head).toEqual(["bird", "2019", "2020"]);
  expect(withHead([["", "a"]]).head).toEqual(["", "a"]);
  expect(withHead([])).toEqual({ head: [], body: [] });
});
