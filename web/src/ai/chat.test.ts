import { afterEach, expect, test, vi } from "vitest";
import { newApi } from "../api/client.ts";
import { ApiFailure } from "../api/failure.ts";
import { complete, explain, pieceOf } from "./chat.ts";
import { keepChat, recallChat } from "./kept.ts";

const api = newApi(null);

afterEach(() => vi.unstubAllGlobals());

const chunk = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

test("an answer comes in pieces, until it is done", async () => {
  vi.stubGlobal("fetch", async () => new Response(`${chunk("Hel")}${chunk("lo")}data: [DONE]\n\n${chunk("never")}`));
  const got: string[] = [];
  for await (const piece of complete(api, [{ role: "user", content: "hi" }], new AbortController().signal))
    got.push(piece);
  expect(got).toEqual(["Hel", "lo"]);
});

test("chunks without text are nothing, a failure among them is thrown", () => {
  expect([pieceOf({ choices: [{ delta: { role: "assistant" } }] }), pieceOf({ choices: [] }), pieceOf(null)]).toEqual([
    "",
    "",
    "",
  ]);
  expect(() => pieceOf({ error: { message: "overloaded" } })).toThrow("overloaded");
});

test("a refusal keeps the proxy's own words and code", async () => {
  vi.stubGlobal(
    "fetch",
    async () =>
      new Response('{"error":{"message":"spent","type":"x","code":"global_quota_exhausted"}}', { status: 429 }),
  );
  const answer = complete(api, [], new AbortController().signal);
  const error = await answer.next().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ status: 429, code: "global_quota_exhausted" });
  expect(explain(error)).toContain("00:00 UTC");
  expect(explain(new ApiFailure(503, "model_unavailable", "x"))).toContain("--ai-model");
});

test("each team has a conversation of its own", () => {
  keepChat("team_a", [{ role: "user", content: "about a" }]);
  expect(recallChat("team_b")).toEqual([]);
  keepChat("team_b", []);
  expect(recallChat("team_a")).toEqual([{ role: "user", content: "about a" }]);
});
