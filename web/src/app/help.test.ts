import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { helpFor } from "./help.ts";

const source = readFileSync(join(process.cwd(), "src/app/router.tsx"), "utf8");
const paths = [...source.matchAll(/path: "([^"]+)"/g)].map(([, path]) => path ?? "");

/** slug is a heading as an anchor. */
const slug = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");

test("every page of the app leads to a page of the documentation that is there", () => {
  expect(paths.length).toBeGreaterThan(15);
  for (const path of paths.filter((path) => path !== "/")) {
    const [page, anchor] = helpFor(path.replace(/\$\w+/, "x")).replace("/help/", "").split("#");
    const file = join(process.cwd(), "../docs", `${page}.md`);
    expect(existsSync(file), `${path} leads to ${page}`).toBe(true);
    const headings = [...readFileSync(file, "utf8").matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slug(heading ?? ""));
    if (anchor) expect(headings, path).toContain(anchor);
  }
});

test("the longest beginning counts, and what is unknown leads to all pages", () => {
  expect(helpFor("/runs")).toBe("/help/runs");
  expect(helpFor("/runs/run_1")).toBe("/help/web#runs");
  expect(helpFor("/runs/sweeps/swp_1")).toBe("/help/runs#several-at-once");
  expect(helpFor("/nowhere")).toBe("/help");
});
