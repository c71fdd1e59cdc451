// The chat proxy's wire format, as far as this page speaks it.
import { raw } from "../api/client.ts";
import { isFailure, isRecord, sentence } from "../api/failure.ts";
import { frames } from "../api/sse.ts";

export interface Turn {
  role: "system" | "user" | "assistant";
  content: string;
}

/** complete streams an answer, piece by piece. */
export async function* complete(messages: Turn[], signal: AbortSignal): AsyncGenerator<string> {
  const response = await raw("/api/ai/proxy/v1/chat/completions", {
    method: "POST",
    signal,
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
    body: JSON.stringify({ model: "default", stream: true, messages }),
  });
  if (!response.body) throw new Error("the model answered without content");
  for await (const frame of frames(response.body)) {
    if (frame.data === "[DONE]") return;
    const piece = pieceOf(JSON.parse(frame.data));
    if (piece) yield piece;
  }
}

/** pieceOf is the new text of one chunk; a chunk that is a failure throws it. */
export function pieceOf(chunk: unknown): string {
  if (!isRecord(chunk)) return "";
  if (isRecord(chunk.error)) throw new Error(String(chunk.error.message ?? "the model broke off"));
  const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
  const delta = isRecord(choice) ? choice.delta : undefined;
  return isRecord(delta) && typeof delta.content === "string" ? delta.content : "";
}

/** explain says why there is no answer, and what can be done. */
export function explain(error: unknown): string {
  if (isFailure(error, "global_quota_exhausted"))
    return "Everybody together has used up what the hosted model gives in a day. It starts anew at 00:00 UTC.";
  if (isFailure(error, "fair_use_exhausted"))
    return "You have used up your share of the hosted model for today. It starts anew at 00:00 UTC.";
  if (isFailure(error, "model_unavailable"))
    return "This server has no chat model. Whoever runs it can set one with --ai-base-url and --ai-model.";
  return sentence(error);
}
