// Folders: what a row of one is downloaded as, and what its manifest has.
import type { Schemas } from "../api/client.ts";

type Row = Pick<Schemas["Output"], "name" | "url" | "size" | "directory">;

/** sizeOf is how much a file or folder holds. */
export const sizeOf = (row: Pick<Row, "size" | "directory"> | undefined): number =>
  row?.directory?.bytes ?? row?.size ?? 0;

/** downloadOf is what a link needs to download a file, or a folder as an archive. */
export const downloadOf = ({ name, url, directory }: Row): { href: string; download: string } =>
  directory ? { href: directory.archiveUrl, download: `${name}.zip` } : { href: url, download: name };

export interface Entry {
  path: string;
  size: number;
  link?: string;
  folder?: boolean;
}

/** Branch is a folder of a manifest, with what is directly in it. */
export interface Branch {
  name: string;
  bytes: number;
  branches: Branch[];
  leaves: { name: string; size: number; link?: string }[];
}

/** treeOf is a manifest as a tree, folders first as they come. */
export function treeOf(name: string, entries: readonly Entry[]): Branch {
  const top: Branch = { name, bytes: 0, branches: [], leaves: [] };
  const known = new Map<string, Branch>([["", top]]);
  const branch = (path: string): Branch => {
    const found = known.get(path);
    if (found) return found;
    const cut = path.lastIndexOf("/");
    const made: Branch = { name: path.slice(cut + 1), bytes: 0, branches: [], leaves: [] };
    known.set(path, made);
    branch(path.slice(0, Math.max(cut, 0))).branches.push(made);
    return made;
  };
  for (const { path, size, link, folder } of entries) {
    if (folder) {
      branch(path);
      continue;
    }
    const cut = path.lastIndexOf("/");
    const above = path.slice(0, Math.max(cut, 0));
    branch(above).leaves.push({ name: path.slice(cut + 1), size, ...(link === undefined ? {} : { link }) });
    for (let at = above; ; at = at.slice(0, Math.max(at.lastIndexOf("/"), 0))) {
      branch(at).bytes += size;
      if (at === "") break;
    }
  }
  return top;
}
