import { expect, test } from "vitest";
import { above, lastPart } from "./browse.ts";

test("one goes up to the top and no further", () => {
  expect(above("reads/run7/a/", "reads/")).toBe("reads/run7/");
  expect(above("reads/run7/", "reads/")).toBe("reads/");
  expect(above("reads/", "reads/")).toBe("reads/");
  expect(above("a/", "")).toBe("");
  expect(above("a//", "")).toBe("a/");
});

test("a folder is called by its last part", () => {
  expect(lastPart("reads/run7/")).toBe("run7");
  expect(lastPart("")).toBe("");
});
