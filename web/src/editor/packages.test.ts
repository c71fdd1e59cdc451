import { expect, test } from "vitest";
import { readPackages, wrongPackage } from "./packages.ts";

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
