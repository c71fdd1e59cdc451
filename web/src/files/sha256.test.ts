import { expect, test } from "vitest";
import { sha256Of } from "./sha256.ts";

const inOneGo = async (bytes: Uint8Array<ArrayBuffer>) =>
  [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))]
    .map((b) => b.toString(16).padStart(2, "0"))
    .join("");

test.each([0, 1, 4 * 1024 * 1024, 9_000_001])("the hash of %i bytes is the browser's own", async (size) => {
  const bytes = new Uint8Array(size).map((_, at) => (at * 31) >> 3);
  expect(await sha256Of(new Blob([bytes]))).toBe(await inOneGo(bytes));
});
