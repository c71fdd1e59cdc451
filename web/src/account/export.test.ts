import { afterEach, expect, test, vi } from "vitest";
import { newApi } from "../api/client.ts";
import { downloadExport, isWhole } from "./export.ts";

const api = newApi(null);

afterEach(() => vi.unstubAllGlobals());

function serve(...pieces: string[]) {
  const body = new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });
  vi.stubGlobal("fetch", async () => new Response(body, { headers: { "Content-Type": "application/json" } }));
}

test("an export that ends with its mark is whole", async () => {
  serve('{"success":true,"data":{"team":{}', ',"complete":true}}\n');
  const seen: number[] = [];
  const blob = await downloadExport(api, (bytes) => seen.push(bytes), new AbortController().signal);
  expect(await blob.text()).toContain('"complete":true');
  expect(seen).toEqual([33, 52]);
});

test("one that was cut off is refused", async () => {
  serve('{"success":true,"data":{"runs":[{"note":"\\"complete\\":true}}"}');
  await expect(downloadExport(api, () => {}, new AbortController().signal)).rejects.toThrow("interrupted");
  expect(isWhole('"complete": true\n}\n}\n')).toBe(true);
});
