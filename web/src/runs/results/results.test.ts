import { expect, test } from "vitest";
import { countText, type Output, originOf, results } from "./results.ts";

const file = (name: string, size = 10): Output => ({
  key: name,
  name,
  nodeId: "n",
  port: "p",
  index: null,
  url: "u",
  reportUrl: name.endsWith(".html") ? "r" : null,
  sha256: "",
  size,
  contentType: "",
  expiresAt: "",
  result: true,
});

test("reports, pictures and small texts are shown, the rest is counted", () => {
  const shown = results([
    file("report.html"),
    file("plot.png"),
    file("huge.png", 2 ** 30),
    file("counts.csv"),
    file("all.csv", 2 ** 30),
    file("empty.txt", 0),
    file("align.bam"),
    file("notes.md"),
  ]);
  const names = (list: Output[]) => list.map((each) => each.name).join(" ");
  expect(names(shown.reports)).toBe("report.html");
  expect(names(shown.pictures)).toBe("plot.png");
  expect(names(shown.texts)).toBe("counts.csv notes.md");
  expect(shown.left).toBe(4);
});

test("of a thousand files only the first are shown", () => {
  const shown = results(Array.from({ length: 1000 }, (_, at) => file(`${at}.${at % 2 ? "png" : "txt"}`)));
  expect(shown.pictures).toHaveLength(24);
  expect(shown.texts).toHaveLength(6);
  expect(shown.left).toBe(970);
});

test("only what the server calls a result is shown, the rest is counted", () => {
  const { result: _, ...unknown } = file("item.txt");
  const shown = results([{ ...file("between.txt"), result: false }, file("counts.txt"), unknown]);
  expect(shown.texts.map((each) => each.name)).toEqual(["counts.txt"]);
  expect(shown.left).toBe(2);
});

test("a file comes from an output of a step, or of one of its items", () => {
  const steps = [
    { id: "n", name: "Align" },
    { id: "unnamed", name: "" },
  ];
  expect(originOf(file("a.bam"), steps)).toBe("Align · p");
  expect(originOf({ ...file("a.bam"), index: 2 }, steps)).toBe("Align [2] · p");
  expect(originOf({ ...file("a.bam"), nodeId: "unnamed" }, steps)).toBe("unnamed · p");
  expect(originOf({ ...file("a.bam"), nodeId: "gone" }, steps)).toBe("gone · p");
});

test("folders are not counted as files", () => {
  const directory = { files: 3, bytes: 30, archiveUrl: "z" };
  const folder = { ...file("plots"), directory };
  expect(countText([file("a.txt")])).toBe("1 file");
  expect(countText([folder])).toBe("1 folder");
  expect(countText([file("a.txt"), folder, file("b.txt")])).toBe("2 files and 1 folder");
});
