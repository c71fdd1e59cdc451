// Folders from disk: what was dropped or chosen, as files and folders to upload.
import type { Schemas } from "../api/client.ts";
import { type Taken, taken } from "./taken.ts";

export type FolderEntry = Schemas["FolderEntry"];

export const folderType = "inode/directory";

/** FolderFile is a folder as one file, whose bytes are those of its files in the order of their paths. */
export class FolderFile extends File {
  constructor(
    name: string,
    readonly files: readonly File[],
    readonly entries: FolderEntry[],
  ) {
    const changed = files.reduce((last, file) => Math.max(last, file.lastModified), 0);
    super([...files], name, { type: folderType, lastModified: changed });
  }
}

interface Found {
  path: string;
  file: File | null; // of an empty folder, none
}

/** folderFile is a folder of what was found in it. */
export function folderFile(name: string, found: readonly Found[]): FolderFile {
  const sorted = found.toSorted((a, b) => byBytes(a.path, b.path));
  return new FolderFile(
    name,
    sorted.flatMap(({ file }) => file ?? []),
    sorted.map(({ path, file }) => (file ? { path, size: file.size } : { path, folder: true })),
  );
}

/** byBytes orders texts as their bytes in UTF-8. Surrogates come before the last characters of two bytes, and should come behind. */
function byBytes(a: string, b: string): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x === y) continue;
    const late = (unit: number) => unit >= 0xd800 && unit <= 0xdfff;
    return late(x) === late(y) ? x - y : late(x) ? 1 : -1;
  }
  return a.length - b.length;
}

/** chosenFolder is a folder that was chosen in the browser's dialog, which gives the files in it. */
export function chosenFolder(files: readonly File[]): FolderFile | null {
  const [first] = files;
  if (!first) return null;
  const name = first.webkitRelativePath.split("/")[0] ?? first.name;
  return folderFile(
    name,
    files.map((file) => ({ path: file.webkitRelativePath.slice(name.length + 1), file })),
  );
}

/** dropped reads what was dropped, with the files in folders. */
export const dropped = (data: DataTransfer): Promise<File[]> => readAll(taken(data));

/** readAll reads the files in folders that were dropped. */
export const readAll = async (all: readonly Taken[]): Promise<File[]> => (await Promise.all(all.map(read))).flat();

async function read({ entry, file }: Taken): Promise<File[]> {
  if (!entry || !isFolder(entry)) return file ? [file] : [];
  const found: Found[] = [];
  await readInto(found, entry, "");
  return [folderFile(entry.name, found)];
}

const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory;
const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;

/** readInto adds what is in a folder to what was found. */
async function readInto(found: Found[], folder: FileSystemDirectoryEntry, above: string): Promise<void> {
  for (const entry of await entriesOf(folder)) {
    const path = above + entry.name;
    if (isFolder(entry)) {
      const before = found.length;
      await readInto(found, entry, `${path}/`);
      if (found.length === before) found.push({ path, file: null });
    } else if (isFile(entry)) {
      found.push({ path, file: await fileOf(entry) });
    }
  }
}

/** entriesOf is all that a folder has: the browser gives it in pieces, the last of them empty. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const pieces: FileSystemEntry[][] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, (error) => reject(unreadable(folder, error))),
    );
    if (some.length === 0) return pieces.flat();
    pieces.push(some);
  }
}

const fileOf = (entry: FileSystemFileEntry): Promise<File> =>
  new Promise((resolve, reject) => entry.file(resolve, (error) => reject(unreadable(entry, error))));

const unreadable = ({ fullPath }: FileSystemEntry, error: Error) =>
  new Error(`can't read ${fullPath.slice(1)} (${error.message}); nothing was uploaded`);
