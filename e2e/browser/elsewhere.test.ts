// Data that lies elsewhere: a bucket is looked into, its bytes are seen coming, and folders are shown as trees.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, until } from "./harness.ts";

let harness: Harness;
let bucket: Server;
let letGo = () => {};
const told = new Promise<void>((resolve) => {
  letGo = resolve;
});

const genome = Buffer.alloc(40 * 1024 * 1024, "ACGT");

/** store is a bucket as S3 has them: one folder with one object, whose last bytes wait until they are let go. */
function store(): Server {
  return createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://bucket");
    if (url.searchParams.has("list-type")) {
      const below = url.searchParams.get("prefix") === "run7/";
      const inside = below
        ? `<Contents><Key>run7/genome.fa</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"e1"</ETag><Size>${genome.length}</Size></Contents>`
        : "<CommonPrefixes><Prefix>run7/</Prefix></CommonPrefixes>";
      response.setHeader("Content-Type", "application/xml");
      response.end(`<ListBucketResult><Name>lab</Name><IsTruncated>false</IsTruncated>${inside}</ListBucketResult>`);
      return;
    }
    const [, from = "0", to = `${genome.length - 1}`] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "") ?? [];
    response.statusCode = request.headers.range ? 206 : 200;
    response.setHeader("ETag", '"e1"');
    response.setHeader("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT");
    response.setHeader("Content-Length", Number(to) - Number(from) + 1);
    if (request.headers.range) response.setHeader("Content-Range", `bytes ${from}-${to}/${genome.length}`);
    if (request.method === "HEAD") {
      response.end();
      return;
    }
    if (Number(to) === genome.length - 1) await told;
    response.end(genome.subarray(Number(from), Number(to) + 1));
  });
}

beforeAll(async () => {
  bucket = store();
  await new Promise<void>((resolve) => bucket.listen(0, "127.0.0.1", resolve));
  harness = await Harness.open("--fetch-allow-private");
});
afterAll(async () => {
  letGo();
  bucket?.closeAllConnections();
  bucket?.close();
  await harness?.close();
});

test("an object is chosen in a bucket, and is seen coming", async () => {
  const ada = await harness.person("Ada Bucket");
  const { page } = ada;
  const made = await ada.api("POST", "/api/connections", {
    name: "Sequencing",
    type: "s3",
    endpoint: `http://127.0.0.1:${(bucket.address() as AddressInfo).port}`,
    bucket: "lab",
    accessKey: "theirs",
    secretKey: "secret",
  });
  expect([made.status, made.body.data.test.ok]).toEqual([201, true]);
  const definition = {
    inputs: { reads: { type: "file" } },
    nodes: [{ id: "count", name: "Count", command: 'wc -c < "$INPUT_in"', inputs: { in: { from: "inputs.reads" } } }],
  };
  const workflow = (await ada.api("POST", "/api/workflows", { name: "Counts", definition })).body.data.id;
  await page.goto(`${harness.url}/workflows/${workflow}?run=1`);
  const dialog = page.getByRole("dialog", { name: "Run" });
  await dialog.getByRole("button", { name: "Choose a file" }).click();
  const picker = page.getByRole("dialog", { name: "Files for reads" });
  await picker.getByRole("button", { name: "Browse a bucket" }).click();
  await picker.getByRole("button", { name: "run7" }).click();
  await picker.getByRole("button", { name: "Use genome.fa" }).waitFor();
  await look(page, "bucket");
  await picker.getByRole("button", { name: "Use genome.fa" }).click();
  await picker.getByRole("button", { name: "Done" }).click();
  await dialog.getByText("s3://lab/run7/genome.fa", { exact: true }).waitFor();
  await dialog.getByRole("button", { name: /^Start/ }).click();
  await page.waitForURL(/\/runs\/run_/);
  await page
    .getByText(/ of 40(\.0)? MB/)
    .first()
    .waitFor();
  await look(page, "fetching");
  letGo();
  const id = page.url().split("/").pop()?.split("?")[0] ?? "";
  const run = await until("the end of the run", async () => {
    const { body } = await ada.api("GET", `/api/runs/${id}`);
    return body.finishedAt ? body : null;
  });
  expect([run.status, run.logs]).toEqual(["completed", expect.stringContaining(String(genome.length))]);
  calm(page);
});

test("a folder is shown as a tree", async () => {
  const ada = await harness.person("Ada Folder");
  const { page } = ada;
  const command =
    "mkdir -p results/plots/deep results/none; echo a > results/plots/deep/a.txt; ln -s deep results/plots/link; echo b > results/b.txt";
  const definition = {
    nodes: [{ id: "make", command, outputs: { dir: { path: "results", directory: true } } }],
  };
  const workflow = (await ada.api("POST", "/api/workflows", { name: "Makes a folder", definition })).body.data.id;
  const { runId } = (await ada.api("POST", "/api/runs", { workflowId: workflow })).body.data;
  await until("the end of the run", async () => (await ada.api("GET", `/api/runs/${runId}`)).body.finishedAt);
  await page.goto(`${harness.url}/files`);
  await page
    .getByRole("button", { name: /results/ })
    .first()
    .click();
  const tree = page.getByRole("region", { name: "results" });
  await tree.getByText("b.txt").waitFor();
  await tree.getByRole("button", { name: "plots" }).click();
  await tree.getByText("link → deep").waitFor();
  await tree.getByRole("button", { name: "deep" }).click();
  await tree.getByText("a.txt").waitFor();
  await tree.getByRole("button", { name: "none" }).click();
  await tree.getByText("Empty").waitFor();
  await look(page, "folder");
  const zip = page.getByRole("link", { name: "Download as zip" });
  const answer = await fetch((await zip.getAttribute("href")) ?? "");
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/zip"]);
  calm(page);
});
