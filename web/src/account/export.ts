// Reading a team's export: it is streamed, so its end says whether it is whole.
import type { Api } from "../api/client.ts";

/** downloadExport reads the whole export and tells how much has come. */
export async function downloadExport(api: Api, onBytes: (bytes: number) => void, signal: AbortSignal): Promise<Blob> {
  const response = await api.raw("/api/account/data", { signal });
  const reader = response.body?.getReader();
  if (!reader) throw new Error("the server sent an empty export");
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  while (true) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value as Uint8Array<ArrayBuffer>);
    bytes += value.length;
    onBytes(bytes);
  }
  const blob = new Blob(parts, { type: "application/json" });
  if (!isWhole(await blob.slice(-64).text())) throw new Error("the export was interrupted; try again");
  return blob;
}

/** isWhole looks for the mark that an export ends with. */
export function isWhole(end: string): boolean {
  return /"complete"\s*:\s*true\s*\}\s*\}\s*$/.test(end);
}
