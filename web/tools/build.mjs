// Builds the app into dist/ and puts a compressed copy beside each file that
// gains by it. What a binary serves was compressed once, here, at the highest
// level.
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "vite";

const dist = new URL("../dist/", import.meta.url).pathname;

for (const name of await readdir(dist)) {
  if (name !== ".gitignore") await rm(join(dist, name), { recursive: true });
}
await build({ logLevel: "warn" });

for (const entry of await readdir(dist, { recursive: true, withFileTypes: true })) {
  const file = join(entry.parentPath, entry.name);
  if (!entry.isFile() || !/\.(js|css|html|svg)$/.test(file)) continue;
  const plain = await readFile(file);
  const copies = {
    ".br": brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
    ".gz": gzipSync(plain, { level: 9 }),
  };
  for (const [ending, bytes] of Object.entries(copies)) {
    if (bytes.length < plain.length * 0.95) await writeFile(file + ending, bytes);
  }
}
