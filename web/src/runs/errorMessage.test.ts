import { expect, test } from "vitest";
import { firstLine } from "./errorMessage.ts";

test("an error report has a heading and the rest", () => {
  expect(firstLine("one")).toEqual(["one", ""]);
  expect(firstLine("Error executing process > 'A'\n\nCaused by:\n  x\n")).toEqual([
    "Error executing process > 'A'",
    "Caused by:\n  x",
  ]);
});
