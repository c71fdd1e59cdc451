import { expect, test } from "vitest";
import type { ParameterField } from "./form.ts";
import { readVaried } from "./varied.ts";

const field = (name: string, type: string): ParameterField =>
  ({ name, kind: type === "integer" ? "integer" : "text", schema: { type }, required: false }) as ParameterField;

test("values are read by line and comma, and their combinations counted", () => {
  const varied = readVaried([field("q", "integer"), field("mode", "string"), field("same", "string")], {
    q: "1, 2\n3",
    mode: "fast\nslow",
  });
  expect(varied).toEqual({ values: { q: [1, 2, 3], mode: ["fast", "slow"] }, runs: 6, errors: {} });
});

test("a value that is none is named", () => {
  const varied = readVaried([field("q", "integer"), field("mode", "string")], { q: "1, two", mode: " " });
  expect(varied.errors.q).toContain("two:");
  expect(varied.errors.mode).toBe("Enter at least one value.");
});
