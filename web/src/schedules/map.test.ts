import { expect, test } from "vitest";
import { readMap } from "./map.ts";

test("lines become a map, none become none, and what is neither is named", () => {
  expect(readMap("")).toEqual({ map: null, error: null });
  expect(readMap("version = /release/tag_name\n\nn=/a/0")).toEqual({
    map: { version: "/release/tag_name", n: "/a/0" },
    error: null,
  });
  expect(readMap("version")).toEqual({ map: null, error: "Enter name = /pointer instead of version" });
  expect(readMap("= /a").error).not.toBeNull();
  expect(readMap("a = b").error).not.toBeNull();
});
