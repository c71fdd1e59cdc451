import { expect, test } from "vitest";
import { readTags, runTitle, startLabel } from "./label.ts";

test("tags are read as people type them, each once", () => {
  expect(readTags(" pilot, grant:2026/4  pilot ")).toEqual({ tags: ["pilot", "grant:2026/4"], error: null });
  expect(readTags("")).toEqual({ tags: [], error: null });
});

test("what is no tag is named", () => {
  expect(readTags("ok näh").error).toContain("“näh”");
  expect(readTags("x".repeat(65)).error).toContain("64 letters");
  expect(readTags(Array.from({ length: 21 }, (_, i) => `t${i}`).join(" ")).error).toBe("At most 20 tags.");
});

test("a run starts with what was filled in, and nothing else", () => {
  expect(startLabel({ name: "  ", note: "", tags: " " })).toEqual({});
  expect(startLabel({ name: " A ", note: "n", tags: "b" })).toEqual({ name: "A", note: "n", tags: ["b"] });
});

test("a run is called by its name, else by workflow and number", () => {
  expect(runTitle({ workflowName: "align", number: 12, name: null })).toBe("align #12");
  expect(runTitle({ workflowName: "align", number: 12, name: "Strict" })).toBe("Strict (align #12)");
});
