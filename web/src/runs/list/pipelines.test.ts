import { expect, test } from "vitest";
import { engines, reportingLines } from "./pipelines.ts";

test("the lines name the server and the token, once each, and end with the start", () => {
  for (const engine of engines) {
    const lines = reportingLines(engine, "https://lab.example", "oat_secret").split("\n");
    expect(lines.filter((line) => line.includes("https://lab.example"))).toHaveLength(1);
    expect(lines.filter((line) => line.includes("oat_secret"))).toHaveLength(1);
    expect(lines.at(-1)).toMatch(new RegExp(`^${engine} `));
  }
});

test("Nextflow is told the address by the option that it obeys", () => {
  const lines = reportingLines("nextflow", "https://lab.example", "oat_secret");
  expect(lines).toContain(" -with-tower https://lab.example/api/nextflow");
});
