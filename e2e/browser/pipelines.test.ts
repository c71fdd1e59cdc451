// A pipeline that runs elsewhere is watched here, with the lines that the page gives.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

test("the lines of the page have a pipeline report here, and do nothing else", async () => {
  const ada = await harness.person("Ada Reeve");
  const { page } = ada;
  await page.goto(`${harness.url}/runs`);
  await page.getByRole("link", { name: "Watch a pipeline" }).click();
  await page.getByRole("heading", { name: "Watch a pipeline" }).waitFor();
  await page.getByRole("tab", { name: "Snakemake" }).click();
  await page.waitForURL(/engine=snakemake/);
  await page.getByText("snakemake --cores 4 --logger millrace").waitFor();
  await page.getByRole("tab", { name: "Nextflow" }).click();
  await page.getByRole("button", { name: "Create token" }).click();
  await page.getByText("Copy the lines now").waitFor();
  const lines = await page.locator("pre").innerText();
  calm(page);
  await look(page, "pipelines");

  // What Nextflow does with these lines: its observer reports to the endpoint with the token.
  const said = (name: string) => new RegExp(`${name}=(\\S+)`).exec(lines)?.[1] ?? "";
  const [endpoint, token] = [said("TOWER_API_ENDPOINT"), said("TOWER_ACCESS_TOKEN")];
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const made = await fetch(`${endpoint}/trace/create`, {
    method: "POST",
    headers,
    body: JSON.stringify({ sessionId: crypto.randomUUID(), runName: "sad_euler", projectName: "lab/rnaseq" }),
  });
  expect(made.status, await made.text()).toBe(200);
  expect((await fetch(`${harness.url}/api/runs`, { headers })).status).toBe(403);
  await page.getByRole("link", { name: "All runs" }).click();
  await page.locator('main a[href^="/runs/run_"]').waitFor();
});

test("what Nextflow reported of a run and its tasks is shown, and nothing that cannot be done", async () => {
  const ada = await harness.person("Ada Reported");
  const { page } = ada;
  const token = (await ada.api("POST", "/auth/api-tokens", { name: "nf", scopes: ["report"] })).body.data.token;
  const send = async (method: string, path: string, body: string) => {
    const answer = await fetch(`${harness.url}/api/nextflow/trace/${path}`, {
      method,
      body,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    });
    const text = await answer.text();
    expect(answer.status, text).toBe(200);
    return JSON.parse(text);
  };
  const file = new URL("../../internal/httpapi/testdata/nextflow/frames/failed.jsonl", import.meta.url);
  const frames = readFileSync(file, "utf8").trim().split("\n");
  let run = "";
  for (const frame of frames) {
    const { verb, body } = JSON.parse(frame);
    if (verb === "create") run = (await send("POST", "create", JSON.stringify(body))).workflowId;
    else await send("PUT", `${run}/${verb}`, JSON.stringify(body));
  }
  await page.goto(`${harness.url}/runs/${run}`);
  await page.getByRole("heading", { name: "Error executing process > 'REPORT'" }).waitFor();
  expect(await page.getByRole("button", { name: "Retry" }).count()).toBe(0);
  expect(await page.getByRole("tab", { name: "Outputs" }).count()).toBe(0);
  await page.getByRole("tab", { name: "Items" }).click();
  await page.getByLabel("Step", { exact: true }).selectOption("TRIM");
  await page.getByRole("button", { name: "TRIM (b)" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("<b>trimmed</b>").waitFor();
  await dialog.getByText("/scratch/rna/work/").waitFor();
  await dialog.getByLabel("Attempt").selectOption("1");
  await dialog.getByText("Attempt 1: failed, exit status 137").waitFor();
  calm(page);
  await look(page, "reported-task");
  await page.keyboard.press("Escape");
  await page.getByRole("tab", { name: "Resources" }).click();
  await page.getByRole("region", { name: "Resources by step" }).waitFor();
  await page.getByLabel("What was measured").selectOption("time");
  await look(page, "reported-resources");
  await page.getByRole("tab", { name: "Details" }).click();
  await page.getByText("nextflow 24.10.0").waitFor();
  calm(page);
});

test("a step of two thousand tasks is a list of the rows in view", async () => {
  const ada = await harness.person("Ada Many");
  const { page } = ada;
  const begun = await ada.api("POST", "/api/reported-runs", { key: "k", engine: "snakemake", project: "many" });
  const run = begun.body.data.runId;
  for (const first of [0, 1000]) {
    const events = Array.from({ length: 1000 }, (_, at) => ({
      seq: first + at + 1,
      task: {
        task: first + at,
        node: "<img src=x onerror=alert(1)>",
        status: at % 500 === 499 ? "failed" : "succeeded",
        name: `sample=${first + at}`,
        script: `echo ${first + at} </pre><script>alert(1)</script>`,
      },
    }));
    const taken = await ada.api("POST", `/api/reported-runs/${run}/events`, { events });
    expect(taken.status, JSON.stringify(taken.body)).toBe(200);
  }
  await page.goto(`${harness.url}/runs/${run}?tab=items`);
  await page.getByText("2,000 of 2,000 items done, 4 failed").waitFor();
  const rows = page.getByRole("region", { name: /^Items of/ }).getByRole("row");
  await page.getByRole("button", { name: "sample=499" }).waitFor(); // failures come first
  expect(await rows.count()).toBeLessThan(100);
  await page.getByRole("button", { name: "sample=499" }).click();
  await page.getByRole("dialog").getByText("echo 499 </pre><script>alert(1)</script>").waitFor();
  calm(page);
  await look(page, "reported-many");
});
