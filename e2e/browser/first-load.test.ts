// What the first page loads, as it goes over the wire.
import { statSync } from "node:fs";
import type { Page, Request } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

const dist = new URL("../../web/dist/", import.meta.url);

/** packed is the size of a script, packed by gzip. */
function packed(path: string): number {
  const file = new URL(path.slice(1), dist);
  return (statSync(`${file.pathname}.gz`, { throwIfNoEntry: false }) ?? statSync(file)).size;
}

const most = 150_000;

/** scriptsOf goes to a page and weighs the scripts that it loads without being asked. */
async function scriptsOf(person: Person, path: string, ready: (page: Page) => Promise<void>) {
  const scripts = new Set<string>();
  const note = (request: Request) => {
    const { pathname } = new URL(request.url());
    if (request.resourceType() === "script" && pathname.startsWith("/assets/")) scripts.add(pathname);
  };
  person.page.on("request", note);
  await person.page.goto(harness.url + path);
  await ready(person.page);
  await person.page.waitForLoadState("networkidle");
  person.page.off("request", note);
  const sizes = Object.fromEntries([...scripts].map((each) => [each, packed(each)]));
  return { sizes, sum: Object.values(sizes).reduce((all, size) => all + size, 0) };
}

test("the first page loads at most 150 kB of scripts, also with the welcome", async () => {
  const ada = await harness.person("Ada First");
  const { page } = ada;
  const welcome = (on: Page) => on.getByRole("region", { name: "First steps" }).waitFor();
  const newcomer = await scriptsOf(ada, "/workflows", welcome);
  expect(newcomer.sum, JSON.stringify(newcomer.sizes, null, 2)).toBeLessThanOrEqual(most);
  const made = await ada.api("POST", "/api/workflows", { name: "Reads", definition: { nodes: [], edges: [] } });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  await page.reload();
  await page.getByRole("link", { name: "Reads", exact: true }).waitFor();
  await welcome(page);

  // What waits for a file loads with it.
  const files = await page.evaluateHandle(() => {
    const moved = new DataTransfer();
    moved.items.add(new File(["ACGT"], "reads.fa"));
    return moved;
  });
  await page.dispatchEvent("body", "dragenter", { dataTransfer: files });
  await page.getByText("Drop files or folders to upload them to").waitFor();
  await page.dispatchEvent("body", "drop", { dataTransfer: files });
  await page.getByRole("region", { name: "Uploads" }).getByText("1 file uploaded").waitFor();
  await until("the file", async () => (await ada.api("GET", "/api/files")).body.data[0]?.name === "reads.fa");
  calm(page);
});
