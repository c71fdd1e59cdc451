// The fields that name a step's packages and a workflow's code, on a server that has no package index.
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, type Json, look, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open("--pip-index-url=");
});
afterAll(() => harness?.close());

async function begin(name: string): Promise<{ ada: Person; now: () => Promise<Json> }> {
  const ada = await harness.person(name);
  const made = await ada.api("POST", "/api/workflows", {
    name: "Plot",
    definition: { nodes: [{ id: "plot", name: "Plot", command: "true" }] },
  });
  expect(made.status).toBe(201);
  const { id } = made.body.data;
  await ada.page.goto(`${harness.url}/workflows/${id}`);
  await ada.page.locator(".react-flow__node", { hasText: "Plot" }).click();
  return { ada, now: async () => (await ada.api("GET", `/api/workflows/${id}`)).body.data.definition };
}

const missing = /cannot build environments: its operator has to install or set .*a package index \(--pip-index-url\)/;

test("packages are checked as they are typed, and what the server lacks is said at the field", async () => {
  const { ada, now } = await begin("Ada Heron");
  const { page } = ada;
  const field = page.getByLabel(/^Python packages/);
  await field.fill("pandas==2.2.*\n--index-url=https://evil.example");
  await page.getByText("is an option: only packages can be named").waitFor();
  await field.fill("https://evil.example/a.whl");
  await page.getByText("is an address or path: only packages can be named").waitFor();
  expect((await now()).nodes[0].environment).toBeUndefined();

  // What the browser lets pass, the server looks at.
  await field.fill("pandas==2.2.*\nnumpy[a,]");
  await field.blur();
  await until("the list is saved", async () => (await now()).nodes[0].environment?.pip?.length === 2);
  await page.getByText("numpy[a,]", { exact: false }).last().waitFor();
  await field.fill("pandas==2.2.*");
  await field.blur();
  await until("the list is saved", async () => (await now()).nodes[0].environment?.pip?.length === 1);
  await page.locator("section", { has: field }).getByText(missing).waitFor();
  await page.getByLabel(/^Python version/).fill("latest");
  await page.getByText("Enter a version such as 3.12.").waitFor();
  await look(page, "packages");
  calm(page);
});

test("conda packages and their channels are checked as they are typed", async () => {
  const { ada, now } = await begin("Ada Egret");
  const { page } = ada;
  await page.getByLabel("Packages from").selectOption("conda");
  const field = page.getByLabel(/^Conda packages/);
  await field.fill("evil::samtools");
  await page.getByText("names a channel: list it below").waitFor();
  await field.fill("samtools=1.20");
  await field.blur();
  await until("the list is saved", async () => (await now()).nodes[0].environment?.conda?.[0] === "samtools=1.20");
  const channels = page.getByLabel(/^Channels/);
  await channels.fill("https://evil.example/channel");
  await page.getByText("is not the name of a channel").waitFor();
  await channels.fill("bioconda");
  await channels.blur();
  await until("the channel is saved", async () => (await now()).nodes[0].environment?.channels?.[0] === "bioconda");
  await page.locator("section", { has: field }).getByText(missing).waitFor();
  calm(page);
});

test("a lock takes the place of the list", async () => {
  const { ada, now } = await begin("Ada Bittern");
  const { page } = ada;
  await page.getByLabel("Packages from").selectOption("lock");
  const field = page.getByLabel(/^Lock/);
  await field.fill("numpy==2.2.6");
  await page.getByText("A lock begins with a line such as").waitFor();
  const lock = `# python 3.12\nnumpy==2.2.6 \\\n    --hash=sha256:${"0".repeat(64)}\n`;
  await field.fill(lock);
  await field.blur();
  await until("the lock is saved", async () => (await now()).nodes[0].environment?.lock === lock);
  expect((await now()).nodes[0].environment).toEqual({ lock });
  await page.locator("section", { has: field }).getByText(missing).waitFor();
  await look(page, "packages-lock");

  // It is still there after the page was loaded, and goes when it is emptied.
  await page.reload();
  await page.locator(".react-flow__node", { hasText: "Plot" }).click();
  expect(await field.inputValue()).toBe(lock);
  await field.fill("");
  await field.blur();
  await until("the lock is gone", async () => (await now()).nodes[0].environment === undefined);
  await page.getByLabel("Packages from").waitFor();
  calm(page);
});

test("where the code is, is checked as it is typed", async () => {
  const { ada, now } = await begin("Ada Plover");
  const { page } = ada;
  await page.getByRole("tab", { name: "Workflow" }).click();
  const field = page.getByLabel("Repository");
  await field.fill("file:///etc");
  await page.getByText("Enter an address such as").waitFor();
  await field.fill("https://ada:word@git.example.org/a.git");
  await page.getByText("Remove the username and password, and create a connection for them.").waitFor();
  expect((await now()).source).toBeUndefined();
  await field.fill("https://git.example.org/ada/analysis.git");
  await field.blur();
  await page.getByLabel("Folder").fill("../other");
  await page.getByText("Enter a folder in the repository").waitFor();
  await page.getByLabel("Folder").fill("scripts");
  await page.getByLabel("Folder").blur();
  await until("the folder is saved", async () => (await now()).source?.path === "scripts");
  expect((await now()).source).toEqual({ git: "https://git.example.org/ada/analysis.git", path: "scripts" });
  await look(page, "code-from-git");
  calm(page);
});
