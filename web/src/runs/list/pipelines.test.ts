import { expect, test } from "vitest";
import { engines, reportingLines } from "./pipelines.ts";

const reporting = {
  server: "https://lab.example",
  token: "oat_secret",
  install: "pip install 'millrace-python @ https://millrace.example.org/clients/a.whl#sha256=00'",
};

test("the lines name the server and the token, once each, and end with the start", () => {
  for (const engine of engines) {
    const lines = reportingLines(engine, reporting).split("\n");
    expect(lines.filter((line) => line.includes("https://lab.example"))).toHaveLength(1);
    expect(lines.filter((line) => line.includes("oat_secret"))).toHaveLength(1);
    expect(lines.at(-1)).toMatch(new RegExp(`^${engine} `));
  }
});

test("Nextflow is told the address by the option that it obeys", () => {
  expect(reportingLines("nextflow", reporting)).toContain(" -with-tower https://lab.example/api/nextflow");
});

test("Snakemake's plugin is installed by the server's own command", () => {
  expect(reportingLines("snakemake", reporting).split("\n")[0]).toBe(reporting.install);
});
