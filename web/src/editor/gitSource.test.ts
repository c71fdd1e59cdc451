import { expect, test } from "vitest";
import { gitConnections, refuseFolder, refuseGit, refuseRef } from "./gitSource.ts";

test("what the server takes is not refused", () => {
  for (const git of ["", "https://github.com/you/x.git", "ssh://git@host/x", "git@host:you/x.git"])
    expect(refuseGit(git), git).toBeNull();
  for (const ref of ["", "main", "v1.2", "feature/x-y", "3f786850e387550fdab836ed7e6dc881de23001b"])
    expect(refuseRef(ref), ref).toBeNull();
  for (const folder of ["", "analysis", "analysis/scripts/"]) expect(refuseFolder(folder), folder).toBeNull();
});

test("what it refuses is said at once", () => {
  for (const git of ["github", "file:///etc", "https://u:p@host/x", "https://host"])
    expect(refuseGit(git), git).not.toBeNull();
  for (const ref of ["-x", "a..b", "a b", "x.lock", "a~1", "/x", ".x"]) expect(refuseRef(ref), ref).not.toBeNull();
  for (const folder of ["/etc", "../x", "a//b", ".git", "a\\b"]) expect(refuseFolder(folder), folder).not.toBeNull();
});

test("connections to Git can be chosen, and one that is gone stays named", () => {
  const list = [
    { id: "conn_1", name: "Forge", type: "git" },
    { id: "conn_2", name: "Bucket", type: "s3" },
  ];
  expect(gitConnections(list, "").map(({ id }) => id)).toEqual(["conn_1"]);
  expect(gitConnections(list, "conn_9").map(({ name }) => name)).toEqual(["Forge", "conn_9"]);
});
