import { expect, test } from "vitest";
import { browserName } from "./browser.ts";

test("browsers are told apart, whatever else they claim to be", () => {
  expect(
    browserName("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0 Safari/537.36"),
  ).toBe("Chrome on Linux");
  expect(
    browserName(
      "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605 (KHTML, like Gecko) Version/17 Safari/605",
    ),
  ).toBe("Safari on macOS");
  expect(browserName("curl/8.5")).toBe("curl/8.5");
  expect(browserName("")).toBe("Unknown program");
});
