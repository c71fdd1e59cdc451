// The chat proxy's wire format, as far as this page speaks it.
import type { Api } from "../api/client.ts";
import { isFailure, isRecord, sentence } from "../api/failure.ts";
import { frames } from "../api/sse.ts";

export interface Turn {
  role: "system" | "user" | "assistant";
  content: string;
}

/** complete streams an answer, piece by piece. */
export async function* complete(api: Api, messages: Turn[], signal: AbortSignal): AsyncGenerator<string> {
  const response = await api.raw("/api/ai/proxy/v1/chat/completions", {
    method: "POST",
    signal,
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
    body: JSON.stringify({ model: "default", stream: true, messages }),
  });
  if (!response.body) throw new Error("the model sent an empty response");
  for await (const frame of frames(response.body)) {
    if (frame.data === "[DONE]") return;
    const piece = pieceOf(JSON.parse(frame.data));
    if (piece) yield piece;
  }
}

/** pieceOf is the new text of one chunk; a chunk that is a failure throws it. */
export function pieceOf(chunk: unknown): string {
  if (!isRecord(chunk)) return "";
  if (isRecord(chunk.error))
    throw new Error(String(chunk.error.message ?? "the model stopped before finishing its answer"));
  const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
  const delta = isRecord(choice) ? choice.delta : undefined;
  return isRecord(delta) && typeof delta.content === "string" ? delta.content : "";
}

/** explain says why there is no answer, and what can be done. */
export function explain(error: unknown): string {
  if (isFailure(error, "global_quota_exhausted"))
    return "This server's daily chat quota is used up. Resets at 00:00 UTC.";
  if (isFailure(error, "fair_use_exhausted")) return "You've reached your daily chat limit. Resets at 00:00 UTC.";
  if (isFailure(error, "model_unavailable"))
    return "Chat isn't set up on this server. Its operator can add a model with --ai-base-url and --ai-model.";
  return sentence(error);
}
