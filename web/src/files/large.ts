// Large files go in parts. What has arrived stays, and the next try goes on from
// there, also after the page was closed, unless somebody cancels. It knows nothing of React or the network.

/** From this size on a file is sent in parts. */
export const largeFrom = 64 * 1024 * 1024;

export interface LargeUpload {
  uploadId: string;
  key: string;
  partSize: number;
  partCount: number;
}

export interface LargeTransport {
  begin: (file: File) => Promise<LargeUpload>;
  /** What of an upload has arrived; null where there is none any more. */
  state: (id: string) => Promise<(LargeUpload & { size: number; parts: { number: number; size: number }[] }) | null>;
  sign: (id: string, number: number) => Promise<string>;
  put: (url: string, part: Blob, onSent: (bytes: number) => void, signal: AbortSignal) => Promise<void>;
  /** The SHA-256 of a file. */
  hash: (file: File, signal: AbortSignal) => Promise<string>;
  /** Makes the parts a file, if its hash is this one. */
  complete: (id: string, sha256: string, file: File) => Promise<void>;
  /** Deletes an upload with what has arrived of it. */
  abort: (id: string) => Promise<void>;
  /** Whether another try may help after this failure. */
  retryable: (error: unknown) => boolean;
  wait: (ms: number) => Promise<void>;
  /** Where ids of uploads are kept for the next time. */
  notes: Pick<Storage, "getItem" | "setItem" | "removeItem">;
  /** The team that gets the file: the same file may be on its way to several. */
  team: string;
}

const parallel = 3;
const tries = 5;

/** sendLarge sends what is missing of a file and gives the key that it is kept under. Once it is cancelled, nothing of it is left. */
export async function sendLarge(
  file: File,
  transport: LargeTransport,
  onSent: (bytes: number) => void,
  signal: AbortSignal,
): Promise<string> {
  const note = `upload:${transport.team}:${file.name}:${file.size}:${file.lastModified}`;
  const found = await resume(file, note, transport);
  try {
    await send(file, found, transport, onSent, signal);
  } catch (error) {
    if (signal.aborted) {
      transport.notes.removeItem(note);
      await transport.abort(found.upload.uploadId).catch(() => {}); // then it goes by itself, after a week
    }
    throw error;
  }
  transport.notes.removeItem(note);
  return found.upload.key;
}

async function send(
  file: File,
  { upload, arrived }: Awaited<ReturnType<typeof resume>>,
  transport: LargeTransport,
  onSent: (bytes: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const sent = new Map(arrived.map((part) => [part.number, part.size]));
  const tell = () => onSent([...sent.values()].reduce((sum, each) => sum + each, 0));
  tell();
  const there = new Set(sent.keys());
  const missing = Array.from({ length: upload.partCount }, (_, i) => i + 1).filter((number) => !there.has(number));
  const ended = new AbortController();
  const hashed = transport.hash(file, AbortSignal.any([signal, ended.signal])); // while the parts are sent
  const work = async () => {
    for (let number = missing.shift(); number !== undefined && !signal.aborted; number = missing.shift()) {
      const part = number;
      const bytes = file.slice((part - 1) * upload.partSize, part * upload.partSize);
      await persist(transport, signal, async () => {
        const url = await transport.sign(upload.uploadId, part);
        await transport.put(
          url,
          bytes,
          (n) => {
            sent.set(part, n);
            tell();
          },
          signal,
        );
      });
      sent.set(part, bytes.size);
      tell();
    }
  };
  const [sum] = await Promise.all([hashed, ...Array.from({ length: parallel }, work)]).finally(() => ended.abort());
  if (signal.aborted) throw new DOMException("cancelled", "AbortError");
  await persist(transport, signal, () => transport.complete(upload.uploadId, sum, file));
}

/** resume finds what an earlier try has begun, or begins anew. */
async function resume(file: File, note: string, transport: LargeTransport) {
  const known = transport.notes.getItem(note);
  const state = known === null ? null : await transport.state(known);
  if (state !== null && state.size === file.size) return { upload: state, arrived: state.parts };
  const upload = await transport.begin(file);
  transport.notes.setItem(note, upload.uploadId);
  return { upload, arrived: [] };
}

/** persist tries again what may work, a little later each time. */
async function persist(transport: LargeTransport, signal: AbortSignal, act: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await act();
    } catch (error) {
      if (signal.aborted || attempt === tries || !transport.retryable(error)) throw error;
      await transport.wait(1000 * attempt);
    }
  }
}
