// The order of imports: what may know whom. Tests and generated files aside.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

const root = join(process.cwd(), "src");

/** knows is which folders each folder imports from. */
function knows(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const file of readdirSync(root, { recursive: true, encoding: "utf8" })) {
    if (!/\.tsx?$/.test(file) || file.includes(".test.") || !file.includes("/")) continue;
    const from = file.split("/")[0] ?? "";
    const seen = found.get(from) ?? new Set();
    found.set(from, seen);
    for (const [, path] of readFileSync(join(root, file), "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)) {
      const to = normalize(join(dirname(file), path ?? "")).split("/")[0] ?? "";
      if (to !== from) seen.add(to);
    }
  }
  return found;
}

test("ui and api know nobody, pages know those two, and nobody knows the app", () => {
  const all = knows();
  expect([...(all.get("ui") ?? [])]).toEqual([]);
  expect([...(all.get("api") ?? [])]).toEqual([]);
  expect([...(all.get("page") ?? [])].sort()).toEqual(["api", "ui"]);
  expect([...all].filter(([, to]) => to.has("app")).map(([from]) => from)).toEqual([]);
});

test("rooms know one another one way only", () => {
  const left = knows();
  // Who knows nobody that is left is taken away, until nobody is or the rest goes in circles.
  for (;;) {
    const free = [...left].filter(([, to]) => [...to].every((room) => !left.has(room)));
    if (free.length === 0) break;
    for (const [room] of free) left.delete(room);
  }
  expect([...left.keys()]).toEqual([]);
});
