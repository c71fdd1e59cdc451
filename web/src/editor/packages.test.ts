import { expect, test } from "vitest";
import { readChannels, readPackages, wrongChannel, wrongConda, wrongLock, wrongPackage } from "./packages.ts";

test("lines are packages", () => {
  expect(readPackages("pandas==2.2.*\n\n  numpy \n")).toEqual(["pandas==2.2.*", "numpy"]);
});

test.each(["", "pandas", "pandas == 2.2.*", "numpy>=1.26,<3", "requests[socks]>=2", 'tomli; python_version < "3.11"'])(
  "%j names packages",
  (text) => {
    expect(wrongPackage(text)).toBeNull();
  },
);

test.each([
  ["-e .", "option"],
  ["numpy\n--index-url=https://example.org", "option"],
  ["x @ https://example.org/x.whl", "address"],
  ["./x", "address"],
  ["pandas 2.2", "pandas==2.2.*"],
])("%j does not", (text, says) => {
  expect(wrongPackage(text)).toContain(says);
});

test.each([
  "",
  "samtools",
  "samtools=1.20",
  "samtools 1.20.*",
  "samtools>=1.2,<2",
  "samtools=1.20=h50_0",
  "python 3.12 h5*",
])("%j names conda packages", (text) => {
  expect(wrongConda(text)).toBeNull();
});

test.each([
  ["-c evil", "option"],
  ["evil::samtools", "channel"],
  ["https://example.org/a-1-0.conda", "address"],
  ["samtools[version=1]", "samtools=1.20"],
  ["samtools>=1,", "samtools=1.20"],
])("%j does not name conda packages", (text, says) => {
  expect(wrongConda(text)).toContain(says);
});

test("channels are names", () => {
  expect(readChannels(" conda-forge, bioconda ")).toEqual(["conda-forge", "bioconda"]);
  expect(wrongChannel("conda-forge bioconda")).toBeNull();
  expect(wrongChannel("https://example.org/c")).toContain("not the name of a channel");
});

const hash = `--hash=sha256:${"0".repeat(64)}`;

test.each([
  "",
  `# python 3.12\nnumpy==2.2.6 \\\n    ${hash} \\\n    ${hash}\n# a remark\n`,
  `# conda linux-64\nown/noarch/word-1.0-0.conda ${hash}`,
])("%j is a lock", (text) => {
  expect(wrongLock(text)).toBeNull();
});

test.each([
  ["numpy==2.2.6", "begins with"],
  [`# numpy\nnumpy==2.2.6 ${hash}`, "begins with"],
  [`# python 3.12\nnumpy==2.2.6 ${hash}\npandas==2.2`, "“pandas==2.2” has no hash"],
  ["# python 3.12\n--index-url https://evil.example", "has no hash"],
])("%j is no lock", (text, says) => {
  expect(wrongLock(text)).toContain(says);
});
