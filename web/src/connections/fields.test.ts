import { expect, test } from "vitest";
import { filled } from "./fields.ts";

test("what belongs to another type or is empty is not sent", () => {
  expect(filled("lab", "s3", { bucket: "b", prefix: "", token: "typed before the type was changed" })).toEqual({
    name: "lab",
    type: "s3",
    bucket: "b",
  });
});
