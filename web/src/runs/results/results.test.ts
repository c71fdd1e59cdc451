import { expect, test } from "vitest";
import { finalOutputs, type Output, results } from "./results.ts";

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

test("the results are what the server says", () => {
  const list = [{ ...file("between.txt"), result: false }, { ...file("counts.txt"), result: true }, file("item.txt")];
  expect(finalOutputs(list).map((each) => each.name)).toEqual(["counts.txt"]);
});
