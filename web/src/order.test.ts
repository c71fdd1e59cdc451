// The order of imports: what may know whom. Tests and generated files aside.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

const root = join(process.cwd(), "src");

const sources = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
  (file) => /\.tsx?$/.test(file) && !file.includes(".test.") && file.includes("/"),
);

/** imports is which others each file or folder imports from, types and what is loaded later included. */
function imports(of: (file: string) => string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const file of sources) {
    const from = of(file);
    const seen = found.get(from) ?? new Set();
    found.set(from, seen);
    for (const [, path] of readFileSync(join(root, file), "utf8").matchAll(/(?:from|import\(|import)\s*"(\.[^"]+)"/g)) {
      const to = of(normalize(join(dirname(file), path ?? "")));
      if (to !== from) seen.add(to);
    }
  }
  return found;
}

/** inCircles is what imports itself by way of others: what is left without those that import nobody or that nobody imports. */
function inCircles(left: Map<string, Set<string>>): string[] {
  for (;;) {
    const imported = new Set([...left.values()].flatMap((to) => [...to]));
    const free = [...left].filter(([each, to]) => !imported.has(each) || ![...to].some((other) => left.has(other)));
    if (free.length === 0) return [...left.keys()];
    for (const [each] of free) left.delete(each);
  }
}

/** room is the folder of src that a file is in, at whatever depth. */
const room = (file: string) => file.split("/")[0] ?? "";

test("ui and api know nobody, pages know those two, and nobody knows the app", () => {
  const all = imports(room);
  expect([...(all.get("ui") ?? [])]).toEqual([]);
  expect([...(all.get("api") ?? [])]).toEqual([]);
  expect([...(all.get("page") ?? [])].sort()).toEqual(["api", "ui"]);
  expect([...all].filter(([, to]) => to.has("app")).map(([from]) => from)).toEqual([]);
});

test("rooms import from one another one way only", () => {
  expect(inCircles(imports(room))).toEqual([]);
});

test("folders import from one another one way only, also within a room", () => {
  expect(inCircles(imports(dirname))).toEqual([]);
});

test("files import from one another one way only", () => {
  expect(inCircles(imports((file) => file))).toEqual([]);
});

test("an Api is made with the query cache of its team, and nowhere else", () => {
  const makers = sources.filter((file) => /\bnewApi\(/.test(readFileSync(join(root, file), "utf8")));
  expect(makers.sort()).toEqual(["api/client.ts", "api/team.ts"]);
});
