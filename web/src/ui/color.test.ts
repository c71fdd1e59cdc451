import { expect, test } from "vitest";
import { readable } from "./color.ts";

test("people's colours carry white letters", () => {
  expect(readable("#0b6e6e")).toBe("#0b6e6e");
  expect(readable("#2b8a3e")).not.toBe("#2b8a3e");
  expect(readable("#ffffff")).toMatch(/^#7\d7\d7\d$/);
});
