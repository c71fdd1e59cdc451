// Files and folders that are sent in parts.
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, until } from "./harness.ts";

let harness: Harness;
const folder = mkdtempSync(join(tmpdir(), "millrace-uploads-"));
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await harness?.close();
});

test("a large file is sent in parts, and compared by its hash", async () => {
  const ada = await harness.person("Ada Parts");
  const bytes = Buffer.alloc(65 * 1024 * 1024 + 7, "reads ");
  const file = join(folder, "reads.fq");
  writeFileSync(file, bytes);
  await ada.page.goto(`${harness.url}/files`);
  const chooser = ada.page.waitForEvent("filechooser");
  await ada.page.getByRole("button", { name: "Upload files" }).first().click();
  const completed = ada.page.waitForRequest((request) => request.url().endsWith("/complete"));
  await (await chooser).setFiles(file);
  const sum = createHash("sha256").update(bytes).digest("hex");
  expect((await completed).postDataJSON()).toEqual({ sha256: sum });
  const row = await until("the file", async () => (await ada.api("GET", "/api/files")).body.data[0]);
  expect([row.name, row.size, row.sha256]).toEqual(["reads.fq", bytes.length, sum]);
  calm(ada.page);
});

test("a large upload tells how long it takes, and goes on after the page was loaded again", async () => {
  const ada = await harness.person("Ada Again");
  const { page } = ada;
  const bytes = Buffer.alloc(100 * 1024 * 1024 + 7, "more reads ");
  const file = join(folder, "more.fq");
  writeFileSync(file, bytes);
  const choose = async () => {
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Upload files" }).first().click();
    await (await chooser).setFiles(file);
  };
  const arrived = async (id: string) => (await ada.api("GET", `/api/files/uploads/${id}`)).body.data.parts.length;
  const begun = page.waitForResponse(
    (response) => response.url().endsWith("/api/files/uploads") && response.request().method() === "POST",
  );
  // The third part never arrives, as on a line that is gone.
  const part = (url: URL) => url.pathname.startsWith("/objects/") && url.searchParams.get("p") === "3";
  await page.route(part, () => {});
  await page.goto(`${harness.url}/files`);
  await choose();
  const { uploadId } = (await (await begun).json()).data;
  await until("three of the four parts", async () => (await arrived(uploadId)) === 3);
  const tray = page.getByRole("region", { name: "Uploads" });
  await tray.getByText(/ of 100 MB · .*\/s · .* left/).waitFor();
  await look(page, "uploading");
  page.once("dialog", (dialog) => void dialog.accept()); // it warns who leaves
  await page.reload();
  await page.unroute(part);
  const sent: string[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (request.method() === "PUT" && url.pathname.startsWith("/objects/")) sent.push(url.searchParams.get("p") ?? "");
  });
  await choose();
  const row = await until("the file", async () => (await ada.api("GET", "/api/files")).body.data[0]);
  expect([row.size, row.sha256, sent]).toEqual([bytes.length, createHash("sha256").update(bytes).digest("hex"), ["3"]]);
  calm(page);
});

test("a folder from disk becomes an input", async () => {
  const ada = await harness.person("Ada Folder");
  const { page } = ada;
  const reads = join(folder, "reads");
  mkdirSync(join(reads, "sub"), { recursive: true });
  writeFileSync(join(reads, "a.txt"), "a\n");
  writeFileSync(join(reads, "sub", "b.txt"), "bb\n");
  const made = await ada.api("POST", "/api/workflows", {
    name: "takes a folder",
    definition: { inputs: { reads: { type: "directory" } }, nodes: [{ id: "a", command: "true" }] },
  });
  await page.goto(`${harness.url}/workflows/${made.body.data.id}?run=1`);
  const dialog = page.getByRole("dialog", { name: "Run" });
  await dialog.getByRole("button", { name: "Choose a folder" }).click();
  const picker = page.getByRole("dialog", { name: "Files for reads" });
  const chooser = page.waitForEvent("filechooser");
  await picker.getByText("Drop a folder here to upload and use it").click();
  await (await chooser).setFiles(reads);
  await picker.getByRole("checkbox", { name: "reads", checked: true }).waitFor();
  await picker.getByRole("button", { name: "Done" }).click();
  await dialog.getByText("5 bytes", { exact: true }).waitFor();
  const [row] = (await ada.api("GET", "/api/files")).body.data;
  expect([row.name, row.directory.files, row.directory.bytes]).toEqual(["reads", 2, 5]);
  calm(page);
});
