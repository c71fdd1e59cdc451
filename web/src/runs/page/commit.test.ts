import { expect, test } from "vitest";
import { behindText, commitUrl } from "./commit.ts";

test("a commit leads to its page", () => {
  for (const [git, want] of [
    ["https://github.com/you/x.git", "https://github.com/you/x/commit/abc"],
    ["https://gitlab.example.org:8443/you/x/", "https://gitlab.example.org:8443/you/x/commit/abc"],
    ["git@github.com:you/x.git", "https://github.com/you/x/commit/abc"],
    ["ssh://git@github.com/you/x", "https://github.com/you/x/commit/abc"],
    ["https://bitbucket.org/you/x", "https://bitbucket.org/you/x/commits/abc"],
    ["ssh://git@host:2222/x", null],
    ["http://127.0.0.1/x", null],
    ["javascript:alert(1)", null],
    ["nonsense", null],
  ] as const) {
    expect(commitUrl(git, "abc"), git).toBe(want);
  }
});

test("a run says how far it is behind", () => {
  expect(behindText("a", undefined)).toBe(null);
  expect(behindText("a", { commit: "a", latest: null, behind: null })).toBe(null);
  expect(behindText("a", { commit: "a", latest: "a", behind: 0 })).toBe(null);
  expect(behindText("a", { commit: "a", latest: "b", behind: 1 })).toBe("1 commit behind");
  expect(behindText("a", { commit: "a", latest: "b", behind: 3 })).toBe("3 commits behind");
  expect(behindText("a", { commit: "a", latest: "b", behind: null })).toBe("newer code is available");
  expect(behindText("a", { commit: "c", latest: "b", behind: 3 })).toBe("newer code is available");
});
