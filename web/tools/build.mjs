// Builds the app into dist/ and compresses each file that gains by it, once and at the
// highest level. Only the compressed copies stay: they are what a binary embeds.
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
  const packed = gzipSync(plain, { level: 9 });
  if (packed.length > plain.length * 0.95) continue;
  await writeFile(`${file}.gz`, packed);
  await writeFile(`${file}.br`, brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
  await rm(file);
}
