// Asking for an analysis and following it: one POST that answers as a stream.
import type { Api, Schemas } from "../api/client.ts";
import { ApiFailure, isRecord } from "../api/failure.ts";
import { frames } from "../api/sse.ts";

export type Analysis = Schemas["Analysis"];
type Message = Schemas["AnalysisMessage"];

export interface Progress {
  stage: string | null;
  percent: number;
  message: string;
}

export interface Question {
  doi?: string;
  pdf?: File;
  title?: string;
}

/** analyze asks, tells the stages on the way, and gives the finished analysis. */
export async function analyze(
  api: Api,
  question: Question,
  onProgress: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<Analysis> {
  const response = await api.raw(question.pdf ? "/api/ai/upload" : "/api/ai/analyze", request(question, signal));
  if (!response.headers.get("Content-Type")?.includes("text/event-stream")) {
    const body: unknown = await response.json();
    return (isRecord(body) ? body.data : body) as Analysis;
  }
  if (!response.body) throw new Error("the server sent an empty response");
  for await (const frame of frames(response.body)) {
    const message = JSON.parse(frame.data) as Message;
    if (message.type === "progress")
      onProgress({ stage: message.stage ?? null, percent: message.percent ?? 0, message: message.message ?? "" });
    if (message.type === "error")
      throw new ApiFailure(
        200,
        message.code ?? "analysis_failed",
        message.error ?? "the analysis failed",
        response.headers.get("X-Request-Id"),
      );
    if (message.type === "result") return finished(message);
  }
  throw new Error("the connection was lost before the analysis finished; try again to continue it");
}

function request({ doi, pdf, title }: Question, signal: AbortSignal): RequestInit {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (!pdf)
    return {
      method: "POST",
      signal,
      headers: { ...headers, "Content-Type": "application/json" },
      body: JSON.stringify({ doi }),
    };
  const body = new FormData();
  body.append("file", pdf);
  if (doi) body.append("doi", doi);
  if (title) body.append("title", title);
  return { method: "POST", signal, headers, body };
}

function finished(message: Message): Analysis {
  return {
    analysisId: message.analysisId ?? "",
    status: message.status ?? "completed",
    stage: message.stage ?? null,
    doi: message.doi ?? null,
    createdAt: message.createdAt ?? new Date().toISOString(),
    error: message.error ?? null,
    result: message.result ?? null,
  };
}
