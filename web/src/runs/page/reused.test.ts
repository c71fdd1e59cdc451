import { expect, test } from "vitest";
import { reusedText } from "./reused.ts";

test("a run says how much of it earlier ones had computed", () => {
  const each = { shards: { total: 1000, done: 1000, failed: 0 } };
  expect(reusedText([{ shards: null }], { steps: 1, items: 0 })).toBe("reused 1 of 1 step");
  expect(reusedText([{ shards: null }, each], { steps: 0, items: 997 })).toBe(
    "reused 0 of 2 steps and 997 of 1,000 items",
  );
});
