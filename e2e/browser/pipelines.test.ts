// A pipeline that runs elsewhere is watched here, with the lines that the page gives.
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
