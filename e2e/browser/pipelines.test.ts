// A pipeline that runs elsewhere is watched here, with the lines that the page gives.
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, until } from "./harness.ts";

let harness: Harness;
// The place of an engine; what it would do, the command of a step does.
const engine = mkdtempSync(join(tmpdir(), "millrace-engine-"));
beforeAll(async () => {
  for (const folder of ["bin", "lib/python3.11/site-packages/snakemake"])
    mkdirSync(join(engine, folder), { recursive: true });
  writeFileSync(join(engine, "bin/python"), "#!/bin/sh\n", { mode: 0o755 });
  chmodSync(engine, 0o755);
  harness = await Harness.open("--snakemake", engine);
});
afterAll(async () => {
  await harness?.close();
  rmSync(engine, { recursive: true, force: true });
});

// typed runs lines as they are typed, and says where Nextflow then reports, and with which token. That is the
// real Nextflow in make test-nextflow, and elsewhere a program that goes by -with-tower as it does.
async function typed(lines: string) {
  const files = fileURLToPath(new URL("../nextflow/", import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), "millrace-nextflow-"));
  try {
    writeFileSync(join(folder, "main.nf"), readFileSync(join(files, "where.nf")));
    const standIn = `#!/bin/bash
endpoint=https://api.cloud.seqera.io
while [ $# -gt 0 ]; do
  if [ "$1" = -with-tower ] && [[ \${2:--} != -* ]]; then endpoint=$2; fi
  shift
done
echo "reports to $endpoint"
`;
    writeFileSync(join(folder, "nextflow"), standIn, { mode: 0o755 });
    const real = process.env.MILLRACE_TEST_NEXTFLOW;
    const { stdout } = await promisify(execFile)("bash", ["-euc", `${lines}\necho "with $TOWER_ACCESS_TOKEN"`], {
      cwd: folder,
      env: {
        ...process.env,
        PATH: `${real ? join(real, "bin") : folder}:${process.env.PATH}`,
        NXF_HOME: folder,
        NXF_PLUGINS_DIR: join(files, "plugins"),
      },
    });
    const said = (word: string) => new RegExp(`${word} (\\S+)`).exec(stdout)?.[1] ?? "";
    return { endpoint: said("reports to"), token: said("with") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("the lines of the page have a pipeline report here, and do nothing else", async () => {
  const ada = await harness.person("Ada Reeve");
  const { page } = ada;
  await page.goto(`${harness.url}/runs`);
  await page.getByRole("link", { name: "Watch a pipeline" }).click();
  await page.getByRole("heading", { name: "Watch a pipeline" }).waitFor();
  await page.getByRole("tab", { name: "Snakemake" }).click();
  await page.waitForURL(/engine=snakemake/);
  await page.getByText("snakemake --cores 4 --logger millrace").waitFor();
  await page.getByText(/pip install 'millrace-python @ .*#sha256=[0-9a-f]{64}' 'snakemake-logger-plugin/).waitFor();
  await page.getByRole("tab", { name: "Nextflow" }).click();
  await page.getByRole("button", { name: "Create token" }).click();
  await page.getByText("Copy the lines now").waitFor();
  const lines = await page.locator("pre").innerText();
  calm(page);
  await look(page, "pipelines");

  // What Nextflow does with these lines: it reports to the endpoint with the token.
  const { endpoint, token } = await typed(lines);
  expect(endpoint).toBe(`${harness.url}/api/nextflow`);
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
  await page.getByRole("heading", { name: "Task REPORT exited with status 3: the report cannot be made" }).waitFor();
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
  await page.getByLabel("Metric").selectOption("time");
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
  await page.getByText("2,000 of 2,000 items done. 4 of 2,000 items failed").waitFor();
  const rows = page.getByRole("region", { name: /^Items of/ }).getByRole("row");
  await page.getByRole("button", { name: "sample=499" }).waitFor(); // failures come first
  expect(await rows.count()).toBeLessThan(100);
  await page.getByRole("button", { name: "sample=499" }).click();
  await page.getByRole("dialog").getByText("echo 499 </pre><script>alert(1)</script>").waitFor();
  calm(page);
  await look(page, "reported-many");
});

test("the processes of a launched pipeline grow below its step, and their tasks are listed", async () => {
  const ada = await harness.person("Ada Launches");
  const { page } = ada;
  const tell = (event: unknown) => `echo '${JSON.stringify(event)}' >> "$EVENTS_FILE"`;
  const task = (number: number, node: string, status: string, more = {}) =>
    tell({ task: { task: number, node, status, name: `sample=${number}`, ...more } });
  const waitFor = (file: string) => `until test -e "$(dirname "$1")/../${file}"; do sleep 0.1; done`;
  const command = [
    "set -- $SNAKEMAKE_PROGRAM",
    waitFor("begin"),
    tell({ graph: { nodes: [{ name: "trim", expected: 2 }], edges: [] } }),
    task(1, "trim", "running", { script: "fastp <b>one</b>" }),
    waitFor("go"),
    task(1, "trim", "succeeded"),
    task(2, "trim", "succeeded"),
    tell({
      graph: {
        nodes: [{ name: "count" }, { name: "report" }],
        edges: [
          { from: "trim", to: "count" },
          { from: "count", to: "report" },
        ],
      },
    }),
    task(3, "count", "failed", { exitCode: 3, message: "no reads left" }),
    "echo nothing left to count >&2",
    "exit 1",
  ].join("\n");
  const definition = { version: 1, nodes: [{ id: "pipeline", name: "Snakemake", type: "task", command }] };
  const made = await ada.api("POST", "/api/workflows", { name: "rna", definition });
  const workflowId = made.body.data.id;
  const started = await ada.api("POST", "/api/runs", { workflowId });
  expect(started.status, JSON.stringify(started.body)).toBe(202);
  const run = `/api/runs/${started.body.data.runId}`;
  // What is reported after the page has read the run, and before it follows it, is shown too.
  const early = async (route: Route) => {
    const response = await route.fetch();
    writeFileSync(join(engine, "begin"), "");
    await until("the pipeline has reported", async () => (await ada.api("GET", run)).body.nodes.length > 1);
    await route.fulfill({ response });
  };
  await page.route(harness.url + run, early, { times: 1 });
  await page.goto(`${harness.url}/runs/${started.body.data.runId}`);
  const graph = page.getByRole("region", { name: "Graph of the run" });
  await graph.getByText("trim").waitFor(); // by itself: nobody reloads
  await graph.getByText("Running 0 of 2").waitFor();
  await look(page, "launched-running");
  writeFileSync(join(engine, "go"), "");
  await page.getByText("Failed in its pipeline: count").waitFor();
  await graph.getByText("report").waitFor();
  await page.getByRole("button", { name: "Retry from failure" }).waitFor(); // it is a run of ours
  await graph.getByText("count", { exact: true }).click();
  await page.getByText("A process of the pipeline that Snakemake runs.").waitFor();
  await page.getByRole("tab", { name: "Items" }).click();
  await page.getByLabel("Step", { exact: true }).selectOption("trim");
  await page.getByRole("button", { name: "sample=1" }).click();
  await page.getByRole("dialog").getByText("fastp <b>one</b>").waitFor();
  calm(page);
  await look(page, "launched-task");
  await page.keyboard.press("Escape");
  await look(page, "launched");
  // The log of a process is that of its step.
  await page.getByRole("tab", { name: "Log" }).click();
  await page
    .getByRole("region", { name: "Log", exact: true })
    .or(page.locator("main"))
    .getByText("nothing left to count")
    .first()
    .waitFor();
  calm(page);
});
