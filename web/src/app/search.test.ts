import { expect, test } from "vitest";
import { changed } from "../ui/changed.ts";
import { flag, oneOf, parseSearch, stringifySearch, text } from "./search.ts";

test("addresses are plain, and come back as they went", () => {
  const search = { q: "12", days: "90", create: true, gone: undefined };
  expect(stringifySearch(search)).toBe("?q=12&days=90&create=1");
  const back = parseSearch("?q=12&days=90&create=1");
  expect({ ...text(back, "q"), ...oneOf(back, "days", ["7", "90"]), ...flag(back, "create") }).toEqual({
    q: "12",
    days: "90",
    create: true,
  });
  expect(stringifySearch({})).toBe("");
});

test("what is malformed is left out", () => {
  const back = parseSearch("?days=8&create=no&q=");
  expect({ ...text(back, "q"), ...oneOf(back, "days", ["7", "90"]), ...flag(back, "create") }).toEqual({});
});

test("what is set to undefined is gone", () => {
  expect(changed<{ a?: string; b?: string }>({ a: "1", b: "2" }, { a: undefined })).toEqual({ b: "2" });
});
