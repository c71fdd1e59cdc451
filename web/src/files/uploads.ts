// The one upload queue of this tab: it survives moving between pages and teams.
import { useSyncExternalStore } from "react";
import { ask } from "../api/client.ts";
import { ApiFailure, isRecord, sentence } from "../api/failure.ts";
import { type TeamClient, useTeam } from "../api/team.ts";
import { coalesced } from "./coalesced.ts";
import { FolderFile } from "./dropped.ts";
import { type LargeTransport, sendLarge } from "./large.ts";
import { type Totals, type Upload, UploadQueue } from "./queue.ts";
import { showTray } from "./tray.ts";

// A list has hundreds of signed addresses: many small files do not read it again each.
const readAgain = coalesced((team: TeamClient) => {
  void team.invalidateQueries({ queryKey: ["files"] });
  void team.invalidateQueries({ queryKey: ["credits"] });
}, 1000);

export const uploads = new UploadQueue<TeamClient>({
  sign: async ({ api }, file) => {
    const contentType = file.type || "application/octet-stream";
    return ask(api.POST("/api/files/presign", { body: { filename: file.name, contentType, size: file.size } }));
  },
  put: (url, file, onSent, signal) => put(url, file, onSent, signal, file.type),
  large: (team, file, onSent, signal) => sendLarge(file, inParts(team), onSent, signal),
  stored: readAgain,
  explain: (error) => ({ message: sentence(error), retryable: retryable(error) }),
});

uploads.subscribe(showTray);

// What was refused stays refused; what broke may work.
function retryable(error: unknown): boolean {
  return !(error instanceof ApiFailure) || error.status === 0 || error.status === 429 || error.status >= 500;
}

const uploadPath = (id: string) => ({ params: { path: { id } } });

const entriesOf = (file: File) => (file instanceof FolderFile ? { entries: file.entries } : {});

const inParts = ({ api, team }: TeamClient): LargeTransport => ({
  begin: (file) =>
    ask(
      api.POST("/api/files/uploads", {
        body: {
          filename: file.name,
          contentType: file.type || "application/octet-stream",
          size: file.size,
          ...entriesOf(file),
        },
      }),
    ),
  state: async (id) => {
    try {
      return await ask(api.GET("/api/files/uploads/{id}", uploadPath(id)));
    } catch (error) {
      if (error instanceof ApiFailure && (error.status === 404 || error.status === 409)) return null;
      throw error;
    }
  },
  sign: async (id, number) => {
    const [part] = await ask(
      api.POST("/api/files/uploads/{id}/parts", { ...uploadPath(id), body: { numbers: [number] } }),
    );
    if (!part) throw new Error("the server sent no upload address for a part of the file");
    return part.url;
  },
  put,
  hash,
  complete: async (id, sha256, file) => {
    const body = { sha256, ...entriesOf(file) };
    await ask(api.POST("/api/files/uploads/{id}/complete", { ...uploadPath(id), body }));
  },
  abort: async (id) => {
    await ask(api.DELETE("/api/files/uploads/{id}", uploadPath(id)));
  },
  // A part that an earlier try still holds is let go of soon.
  retryable: (error) => retryable(error) || (error instanceof ApiFailure && error.status === 409),
  wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  notes: localStorage,
  team: team ?? "",
});

// hash has a worker read the file; cancelling ends it.
function hash(file: File, signal: AbortSignal): Promise<string> {
  return new Promise<string>((resolve, reject) => {
    const worker = new Worker(new URL("./sha256.worker.ts", import.meta.url), { type: "module" });
    const end = (act: () => void) => {
      worker.terminate();
      act();
    };
    worker.onmessage = ({ data }: MessageEvent<{ sum?: string; error?: string }>) =>
      end(() => (data.sum ? resolve(data.sum) : reject(new Error(`the file can't be read: ${data.error}`))));
    worker.onerror = () =>
      end(() => reject(new Error("the file can't be checked; reload the page and choose it again")));
    const cancel = () => end(() => reject(new DOMException("cancelled", "AbortError")));
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
    worker.postMessage(file);
  });
}

// XMLHttpRequest, because fetch does not tell how much has been sent.
function put(
  url: string,
  file: Blob,
  onSent: (bytes: number) => void,
  signal: AbortSignal,
  contentType = "",
): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", url);
    request.setRequestHeader("Content-Type", contentType || "application/octet-stream");
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

export type TeamUpload = Upload<TeamClient>;
export type TeamUploads = Totals<TeamClient>;

/** useUploads is all uploads of this tab, whichever team they go to. */
export function useUploads(): TeamUploads {
  return useSyncExternalStore(uploads.subscribe, uploads.now);
}

/** useUpload queues files for the team that is on screen. */
export function useUpload(): (files: File[]) => Promise<TeamUpload>[] {
  const team = useTeam();
  return (files) => uploads.add(team, files);
}
