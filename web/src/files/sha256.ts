// The hash of a file of any size, read piece by piece: the browser's own takes only what
// is in memory as a whole. Loaded by sha256.worker.ts alone.
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

const piece = 4 * 1024 * 1024;

export async function sha256Of(file: Blob): Promise<string> {
  const hash = sha256.create();
  for (let at = 0; at < file.size; at += piece) {
    hash.update(new Uint8Array(await file.slice(at, at + piece).arrayBuffer()));
  }
  return bytesToHex(hash.digest());
}
