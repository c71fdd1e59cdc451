// Fails when a page loads more than it should, or in more files: what a visitor waits
// for is measured as it goes over the wire, by gzip.
import { readFileSync, statSync } from "node:fs";

const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("manifest.json", dist), "utf8"));
const kB = 1000;

const limits = [
  {
    what: "first load",
    entries: ["index.html", "src/workflows/WorkflowsPage.tsx", "src/workflows/Welcome.tsx"],
    script: 150 * kB,
    style: 12 * kB,
  },
  {
    what: "editor route",
    entries: ["src/editor/EditorPage.tsx"],
    beyond: "index.html",
    script: 150 * kB,
    style: 5 * kB,
  },
];
const mostFiles = 15;

/** Everything that must be there before a module runs. */
function files(entry, found = new Set()) {
  const chunk = manifest[entry];
  if (!chunk) throw new Error(`${entry} is not in the manifest`);
  if (found.has(chunk.file)) return found;
  found.add(chunk.file);
  for (const css of chunk.css ?? []) found.add(css);
  for (const next of chunk.imports ?? []) files(next, found);
  return found;
}

function weigh(file) {
  const packed = new URL(`${file}.gz`, dist);
  return statSync(packed, { throwIfNoEntry: false })?.size ?? statSync(new URL(file, dist)).size;
}

let failed = false;
for (const { what, entries, beyond, ...most } of limits) {
  const already = beyond ? files(beyond) : new Set();
  const needed = [...new Set(entries.flatMap((entry) => [...files(entry)]))].filter((file) => !already.has(file));
  const sums = { script: 0, style: 0 };
  for (const file of needed) sums[file.endsWith(".css") ? "style" : "script"] += weigh(file);
  const tooMuch = sums.script > most.script || sums.style > most.style || needed.length > mostFiles;
  const parts = Object.keys(sums).map((kind) => `${(sums[kind] / kB).toFixed(1)} of ${most[kind] / kB} kB ${kind}`);
  process.stdout.write(
    `${what}: ${parts.join(", ")} (gzip), ${needed.length} files of ${mostFiles}: ${tooMuch ? "TOO MUCH" : "ok"}\n`,
  );
  failed ||= tooMuch;
}
process.exit(failed ? 1 : 0);
