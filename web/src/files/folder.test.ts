import { expect, test } from "vitest";
import { downloadOf, sizeOf, treeOf } from "./folder.ts";

test("a manifest is shown as a tree, with what each folder holds", () => {
  const top = treeOf("results", [
    { path: "1/2/deep.txt", size: 5 },
    { path: "1/link", size: 0, link: "2" },
    { path: "a.txt", size: 3 },
    { path: "none", size: 0, folder: true },
  ]);
  expect(top.bytes).toBe(8);
  expect(top.leaves).toEqual([{ name: "a.txt", size: 3 }]);
  expect(top.branches.map(({ name, bytes }) => [name, bytes])).toEqual([
    ["1", 5],
    ["none", 0],
  ]);
  expect(top.branches[0]?.leaves).toEqual([{ name: "link", size: 0, link: "2" }]);
  expect(top.branches[0]?.branches[0]?.leaves).toEqual([{ name: "deep.txt", size: 5 }]);
});

test("names of objects' own members are folders like others", () => {
  const top = treeOf("results", [{ path: "__proto__/constructor", size: 1 }]);
  expect(top.branches[0]?.name).toBe("__proto__");
});

test("a folder is downloaded as an archive", () => {
  const file = { name: "x", url: "u", size: 4 };
  const folder = { ...file, directory: { files: 2, bytes: 9, archiveUrl: "z" } };
  expect(downloadOf(file)).toEqual({ href: "u", download: "x" });
  expect(downloadOf(folder)).toEqual({ href: "z", download: "x.zip" });
  expect([sizeOf(file), sizeOf(folder), sizeOf(undefined)]).toEqual([4, 9, 0]);
});
