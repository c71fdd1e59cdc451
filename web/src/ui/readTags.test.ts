import { expect, test } from "vitest";
import { readTags } from "./readTags.ts";

test("tags are read as people type them, each once", () => {
  expect(readTags(" pilot, grant:2026/4  pilot ")).toEqual({ tags: ["pilot", "grant:2026/4"], error: null });
  expect(readTags("")).toEqual({ tags: [], error: null });
});

test("what is no tag is named", () => {
  expect(readTags("ok näh").error).toContain("“näh”");
  expect(readTags("x".repeat(65)).error).toContain("64 letters");
  expect(readTags(Array.from({ length: 21 }, (_, i) => `t${i}`).join(" ")).error).toBe("At most 20 tags.");
});
