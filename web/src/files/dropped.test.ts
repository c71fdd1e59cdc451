import { expect, test } from "vitest";
import { chosenFolder, dropped, FolderFile } from "./dropped.ts";

type Tree = { [name: string]: string | Tree };

/** entry is what a browser says of a file or folder, of which it gives two at a time. */
function entry(name: string, what: string | Tree): FileSystemEntry {
  if (typeof what === "string") {
    const file = (take: (file: File) => void) => take(new File([what], name, { lastModified: what.length }));
    return { name, isFile: true, isDirectory: false, file } as unknown as FileSystemEntry;
  }
  const createReader = () => {
    const left = Object.entries(what).map(([name, inside]) => entry(name, inside));
    return { readEntries: (take: (some: FileSystemEntry[]) => void) => take(left.splice(0, 2)) };
  };
  return { name, isFile: false, isDirectory: true, createReader } as unknown as FileSystemEntry;
}

const item = (entry: FileSystemEntry | null, file: File | null) => ({
  kind: "file",
  webkitGetAsEntry: () => entry,
  getAsFile: () => file,
});

const drop = (items: unknown[]) => dropped({ items, files: [] } as unknown as DataTransfer);

test("a folder that is dropped is one file, in the order of the paths", async () => {
  const tree = {
    b: { c: "three", "\u{1F600}": "4", "\uFF5E": "5" },
    "a.txt": "one ",
    "b-c": "two ",
    none: { deep: {} },
  };
  const single = new File(["x"], "single.txt");
  const [folder, other] = await drop([item(entry("reads", tree), null), item(null, single)]);
  expect(other).toBe(single);
  if (!(folder instanceof FolderFile)) throw new Error("it is no folder");
  expect(folder.entries).toEqual([
    { path: "a.txt", size: 4 },
    { path: "b-c", size: 4 },
    { path: "b/c", size: 5 },
    { path: "b/\uFF5E", size: 1 },
    { path: "b/\u{1F600}", size: 1 },
    { path: "none/deep", folder: true },
  ]);
  expect([folder.name, folder.type, folder.lastModified, await folder.text()]).toEqual([
    "reads",
    "inode/directory",
    5,
    "one two three54",
  ]);
});

test("a folder that is chosen is the same", async () => {
  const file = (path: string, text: string) =>
    Object.defineProperty(new File([text], path.split("/").at(-1) ?? ""), "webkitRelativePath", { value: path });
  const folder = chosenFolder([file("reads/z", "last"), file("reads/a/b", "first ")]);
  expect(folder?.entries).toEqual([
    { path: "a/b", size: 6 },
    { path: "z", size: 4 },
  ]);
  expect([folder?.name, await folder?.text()]).toEqual(["reads", "first last"]);
  expect(chosenFolder([])).toBeNull();
});

test("a folder with very many files in a folder is read", async () => {
  const names = Array.from({ length: 130_000 }, (_, i) => String(i).padStart(6, "0"));
  const one = new File([], "one");
  const files = names.map((name) => ({
    name,
    isFile: true,
    isDirectory: false,
    file: (take: (f: File) => void) => take(one),
  }));
  const folderOf = (name: string, inside: unknown[]) => {
    const pieces = [inside];
    const readEntries = (take: (some: unknown[]) => void) => take(pieces.shift() ?? []);
    return { name, isFile: false, isDirectory: true, createReader: () => ({ readEntries }) };
  };
  const tree = folderOf("reads", [folderOf("sub", files)]) as unknown as FileSystemEntry;
  const [folder] = await drop([item(tree, null)]);
  expect(folder instanceof FolderFile && folder.entries.length).toBe(names.length);
});

test("a folder that cannot be read is named", async () => {
  const readEntries = (_take: unknown, fail: (error: Error) => void) => fail(new Error("permission denied"));
  const closed = { name: "sub", fullPath: "/reads/sub", isDirectory: true, createReader: () => ({ readEntries }) };
  const pieces = [[closed], []];
  const reader = { readEntries: (take: (some: unknown[]) => void) => take(pieces.shift() ?? []) };
  const tree = { name: "reads", isDirectory: true, createReader: () => reader } as unknown as FileSystemEntry;
  await expect(drop([item(tree, null)])).rejects.toThrow(
    "can't read reads/sub (permission denied); nothing was uploaded",
  );
});
