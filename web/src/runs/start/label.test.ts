import { expect, test } from "vitest";
import { startLabel } from "./label.ts";

test("a run starts with what was filled in, and nothing else", () => {
  expect(startLabel({ name: "  ", note: "", tags: " " })).toEqual({});
  expect(startLabel({ name: " A ", note: "n", tags: "b" })).toEqual({ name: "A", note: "n", tags: ["b"] });
});
