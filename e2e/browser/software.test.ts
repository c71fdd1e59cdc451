// What a run shows of the packages of its steps, on a server with uv.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, until } from "./harness.ts";
import { PackageIndex } from "./packageIndex.ts";

let harness: Harness;
let index: PackageIndex;
beforeAll(async () => {
  execFileSync("uv", ["--version"]); // scripts/with-uv has it
  index = await PackageIndex.start();
  harness = await Harness.open("--fetch-allow-private", "--pip-index-url", index.url);
});
afterAll(async () => {
  await harness?.close();
  index?.close();
});

test("a run shows how its packages are built, which they are, and their lock", async () => {
  const ada = await harness.person("Ada Curlew");
  const { page } = ada;
  const made = await ada.api("POST", "/api/workflows", {
    name: "Greet",
    definition: {
      nodes: [{ id: "greet", name: "Greet", environment: { pip: ["greeter"] }, command: "python -m greeter" }],
    },
  });
  expect(made.body.data.problems ?? []).toEqual([]);
  const started = await ada.api("POST", "/api/runs", { workflowId: made.body.data.id });
  expect(started.status).toBe(202);
  const run = `/api/runs/${started.body.data.runId}`;
  const environment = `${run}/nodes/greet/environment`;
  await until("it is being built", async () => (await ada.api("GET", environment)).body.data.state === "building");

  await page.goto(`${harness.url}/runs/${started.body.data.runId}`);
  await page.locator(".react-flow__node", { hasText: "Greet" }).click();
  await page.getByText("Packages (installing)").waitFor();
  await look(page, "run-packages-building");

  index.letGo();
  await page.getByText("Packages (1 package)").waitFor();
  await until("the run has ended", async () => (await ada.api("GET", run)).body.status === "completed");
  const list = page.getByRole("list", { name: "Installed packages" });
  if (!(await list.isVisible())) await page.getByText("Packages (1 package)").click();
  await list.getByText("greeter 1.0").waitFor();
  await page.getByText(/Installed 1 package/).waitFor();
  await look(page, "run-packages");

  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download lock" }).click();
  const lock = readFileSync(await (await download).path(), "utf8");
  expect(lock).toBe((await ada.api("GET", environment)).body.data.lock);
  expect(lock).toMatch(/^# python 3\.\d+\ngreeter==1\.0 \\\n {4}--hash=sha256:[0-9a-f]{64}\n$/);
  calm(page);
});
