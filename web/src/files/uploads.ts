// The one upload queue of this tab: it survives moving between pages.
import { useSyncExternalStore } from "react";
import { api, ask } from "../api/client.ts";
import { ApiFailure, isRecord, sentence } from "../api/failure.ts";
import { type Totals, UploadQueue } from "./queue.ts";

export const uploads = new UploadQueue({
  sign: async (file) => {
    const contentType = file.type || "application/octet-stream";
    return ask(api.POST("/api/files/presign", { body: { filename: file.name, contentType, size: file.size } }));
  },
  put,
  explain: (error) => ({
    message: sentence(error),
    // What was refused stays refused; what broke may work.
    retryable: !(error instanceof ApiFailure) || error.status === 0 || error.status === 429 || error.status >= 500,
  }),
});

// XMLHttpRequest, because fetch does not tell how much has been sent.
function put(url: string, file: File, onSent: (bytes: number) => void, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", url);
    request.setRequestHeader("Content-Type", file.type || "application/octet-stream");
    request.upload.onprogress = (event) => onSent(event.loaded);
    request.onload = () => (request.status < 300 ? resolve() : reject(refusal(request)));
    request.onerror = () => reject(new Error("the connection was lost during the upload"));
    request.onabort = () => reject(new DOMException("cancelled", "AbortError"));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(file);
  });
}

function refusal(request: XMLHttpRequest): ApiFailure {
  let words = `the storage responded with ${request.status}`;
  try {
    const body: unknown = JSON.parse(request.responseText);
    if (isRecord(body) && typeof body.error === "string") words = body.error;
  } catch {
    // A bucket speaks XML; its status says enough.
  }
  return new ApiFailure(request.status, "upload_refused", words, request.getResponseHeader("X-Request-Id"));
}

export function useUploads(): Totals {
  return useSyncExternalStore(uploads.subscribe, uploads.now);
}
