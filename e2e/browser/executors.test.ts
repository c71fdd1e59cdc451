// A server with two executors, of which one cannot be reached.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, type Json, look } from "./harness.ts";

let harness: Harness;
const folder = mkdtempSync(join(tmpdir(), "millrace-executors-"));
beforeAll(async () => {
  const file = join(folder, "executors.json");
  const cluster = { folder: join(folder, "shared"), commandPrefix: "false" };
  writeFileSync(
    file,
    JSON.stringify([
      { name: "here", kind: "local", capacity: "vcpu=4,ramGb=16" },
      { name: "cluster", kind: "slurm", priceFactor: 1.5, slurm: cluster },
    ]),
  );
  harness = await Harness.open("--executors-file", file);
});
afterAll(async () => {
  await harness?.close();
  rmSync(folder, { recursive: true, force: true });
});

test("a run is executed where the dialog was told", async () => {
  const ada = await harness.person("Ada Sluice");
  const { page } = ada;
  const definition = { nodes: [{ id: "a", name: "Only", command: "echo hello" }] };
  const made = await ada.api("POST", "/api/workflows", { name: "Greeting", definition });
  await page.goto(`${harness.url}/workflows/${made.body.data.id}?run=1`);
  const dialog = page.getByRole("dialog", { name: "Run" });
  const picker = dialog.getByLabel("Where it runs");
  const away = picker.getByRole("option", { name: "cluster: not available" });
  await away.waitFor({ state: "attached" });
  expect(await away.isDisabled()).toBe(true);
  await picker.selectOption("here");
  await look(page, "run-dialog-executors");
  await dialog.getByRole("button", { name: /^Start/ }).click();
  await page.waitForURL(/\/runs\/run_/);
  await page.getByRole("heading", { level: 1 }).getByText("Completed").waitFor();
  const run = await ada.api("GET", `/api/runs/${page.url().split("/").pop()}`);
  expect(run.body.executor).toBe("here");
  calm(page);
});

test("a size is compared with the executor that is chosen", async () => {
  const ada = await harness.person("Ada Weir");
  const { page } = ada;
  const definition = { nodes: [{ id: "a", name: "Only", command: "echo hello" }] };
  const made = await ada.api("POST", "/api/workflows", { name: "Greeting", definition });
  // The page is told of a cluster that answers, which this machine does not have.
  await page.route("**/api/executors", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    const cluster = body.data.find((each: Json) => each.name === "cluster");
    cluster.capacity = cluster.free = { vcpu: 512, ramGb: 4096, gpu: 0 };
    cluster.problem = null;
    await route.fulfill({ response, json: body });
  });
  await page.goto(`${harness.url}/workflows/${made.body.data.id}?run=1`);
  const dialog = page.getByRole("dialog", { name: "Run" });
  const picker = dialog.getByLabel("Where it runs");
  const huge = dialog.getByRole("radio", { name: /^Huge/ });
  await picker.selectOption("here");
  await dialog.getByText("Too large for here").waitFor();
  expect(await huge.isDisabled()).toBe(true);
  await picker.selectOption("cluster");
  await dialog.getByText("Too large for here").waitFor({ state: "detached" });
  expect(await huge.isDisabled()).toBe(false);

  // A size that was chosen before stays chosen, and the dialog says what that means.
  await dialog.getByText("Huge", { exact: true }).click();
  await picker.selectOption("here");
  await dialog.getByText(/^here has 4 vCPU and 16 GB. The run gets the whole machine/).waitFor();
  calm(page);
});
