/** Taken is a file or folder that was dropped. */
export interface Taken {
  entry: FileSystemEntry | null;
  file: File | null;
}

/** taken is what was dropped, while the event is handled: the browser forgets it afterwards. */
export function taken({ items, files }: DataTransfer): Taken[] {
  const list = [...items].filter(({ kind }) => kind === "file");
  if (list.length === 0) return [...files].map((file) => ({ entry: null, file }));
  return list.map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
}
