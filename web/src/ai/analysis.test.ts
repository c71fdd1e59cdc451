import { afterEach, expect, test, vi } from "vitest";
import { newApi } from "../api/client.ts";
import { analyze } from "./analysis.ts";
import { readDoi } from "./doi.ts";

const api = newApi(null);

afterEach(() => vi.unstubAllGlobals());

test("a DOI is found however it is pasted", () => {
  for (const text of [
    "10.1038/nature12373",
    " doi:10.1038/nature12373 ",
    "https://doi.org/10.1038/nature12373",
    "https://dx.doi.org/10.1038%2Fnature12373",
    "See 10.1038/nature12373.",
  ]) {
    expect(readDoi(text), text).toBe("10.1038/nature12373");
  }
  for (const text of ["", "nature12373", "100%", "10.1/x"]) expect(readDoi(text), text).toBeNull();
});

function answer(body: string, headers: Record<string, string> = {}, status = 200) {
  const fetched = vi.fn(
    async () => new Response(body, { status, headers: { "Content-Type": "text/event-stream", ...headers } }),
  );
  vi.stubGlobal("fetch", fetched);
  return fetched;
}

const frame = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

test("stages are told, then the analysis is given", async () => {
  answer(
    frame({ type: "progress", stage: "reading", percent: 40, message: "Reading" }) +
      frame({ type: "result", analysisId: "an_1", status: "completed", result: null }),
  );
  const seen: string[] = [];
  const analysis = await analyze(
    api,
    { doi: "10.1/x" },
    (progress) => seen.push(progress.message),
    new AbortController().signal,
  );
  expect([seen, analysis.analysisId]).toEqual([["Reading"], "an_1"]);
});

test("a failure on the way keeps its code", async () => {
  answer(frame({ type: "error", code: "closed_access", error: "no open copy" }));
  await expect(analyze(api, { doi: "10.1/x" }, () => {}, new AbortController().signal)).rejects.toMatchObject({
    code: "closed_access",
  });
});

test("a failure before the first frame does too", async () => {
  answer(
    '{"success":false,"error":"no open copy","code":"closed_access","requestId":"r"}',
    { "Content-Type": "application/json" },
    409,
  );
  await expect(analyze(api, { doi: "10.1/x" }, () => {}, new AbortController().signal)).rejects.toMatchObject({
    status: 409,
    code: "closed_access",
  });
});

test("a stream that breaks off is no answer", async () => {
  answer(frame({ type: "progress", percent: 10 }));
  await expect(analyze(api, { doi: "10.1/x" }, () => {}, new AbortController().signal)).rejects.toThrow("lost before");
});

test("a PDF goes as a form", async () => {
  const fetched = answer(frame({ type: "result", analysisId: "an_2" }));
  await analyze(api, { pdf: new File(["%PDF"], "a.pdf"), doi: "10.1/x" }, () => {}, new AbortController().signal);
  const [path, init] = fetched.mock.calls[0] as unknown as [string, RequestInit];
  expect([path, (init.body as FormData).get("doi")]).toEqual(["/api/ai/upload", "10.1/x"]);
});
