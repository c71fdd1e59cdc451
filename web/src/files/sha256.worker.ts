// Hashes beside the page, which stays quick meanwhile.
import { sha256Of } from "./sha256.ts";

addEventListener("message", ({ data }: MessageEvent<Blob>) => {
  sha256Of(data).then(
    (sum) => postMessage({ sum }),
    (error: unknown) => postMessage({ error: String(error) }),
  );
});
