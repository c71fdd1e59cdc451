// Files that are sent in parts.
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, until } from "./harness.ts";

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
