import { expect, test } from "vitest";
import { addressIn, asGiven, asText, fitting, problemOf, withConnections } from "./addresses.ts";

test("a form's text and what the server takes are the same input", () => {
  for (const given of ["teams/t/a.fq", "s3://lab/a", { url: "s3://lab/a b", connection: "conn_1" }])
    expect(asGiven(asText(given))).toEqual(given);
  expect(asText({ url: "s3://lab/a" })).toBe("s3://lab/a");
  expect(addressIn("teams/t/a.fq")).toBeNull();
  expect(addressIn(asText({ url: "https://e.org/a", connection: "conn_1" }))).toBe("https://e.org/a");
});

test("connections are offered where they reach", () => {
  const lab = { id: "1", type: "s3" as const, bucket: "lab", prefix: "reads/", host: null };
  const all = { id: "2", type: "s3" as const, bucket: "lab", prefix: null, host: null };
  const host = { id: "3", type: "https" as const, bucket: null, prefix: null, host: "e.org" };
  const ids = (address: string) => fitting(address, [lab, all, host]).map((each) => each.id);
  expect(ids("s3://lab/reads/*.fq")).toEqual(["1", "2"]);
  expect(ids("s3://lab/other/a")).toEqual(["2"]);
  expect(ids("s3://labor/reads/a")).toEqual([]);
  expect(ids("https://E.org/a")).toEqual(["3"]);
  expect(ids("https://e.org.evil.org/a")).toEqual([]);
  expect(ids("lab")).toEqual([]);
});

test("what is wrong is said before it is sent", () => {
  expect(problemOf("s3://lab/a", false)).toBeNull();
  expect(problemOf("ftp://e.org/a", true)).toContain("starts with");
  expect(problemOf("s3://lab/reads/", true)).toContain("s3://lab/reads/*");
  expect(problemOf("s3://lab/reads/", false)).toContain("one object");
});

test("a run's inputs are given again with their connections", () => {
  const addresses = [{ url: "s3://lab/a", connection: "conn_1", size: 1, sha256: null }];
  expect(withConnections({ inputs: { reads: ["s3://lab/a", "teams/t/b"] }, addresses })).toEqual({
    reads: [{ url: "s3://lab/a", connection: "conn_1" }, "teams/t/b"],
  });
});

test("a folder is given again with the connection of its objects", () => {
  const addresses = ["s3://lab/run70/b", "s3://lab/run7/a"].map((url, n) => ({
    url,
    connection: `conn_${n}`,
    size: 1,
    sha256: null,
  }));
  expect(
    withConnections({ inputs: { run: "s3://lab/run7/", other: "s3://open/run7/", file: "teams/t/" }, addresses }),
  ).toEqual({
    run: [{ url: "s3://lab/run7/", connection: "conn_1" }],
    other: ["s3://open/run7/"],
    file: ["teams/t/"],
  });
});

test("a folder of a bucket ends with a slash", () => {
  expect(problemOf("s3://lab/run7/", false, true)).toBeNull();
  for (const address of ["s3://lab/run7", "s3://lab/", "https://lab.example.org/run7/", "run7/"]) {
    expect(problemOf(address, false, true)).toContain("slash");
  }
});
