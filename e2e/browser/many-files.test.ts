// More files than one page of the list has: all can be listed, picked and found.
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, type Person, until } from "./harness.ts";

// One page of the API has 2,000.
const many = process.env.MILLRACE_TEST_ALL ? 5000 : 2200;

let harness: Harness;
let person: Person;

beforeAll(async () => {
  harness = await Harness.open("--sandbox", "none");
  person = await harness.person("Many Files");
  const { api } = person;
  const definition = {
    nodes: [
      {
        id: "make",
        command: `mkdir out && for i in $(seq 1 ${many}); do printf x > out/sample_$i.txt; done`,
        outputs: { all: { path: "out/*.txt", many: true } },
      },
    ],
    outputs: { all: { from: "make.all" } },
  };
  const made = await api("POST", "/api/workflows", { name: "Makes files", definition });
  const run = (await api("POST", "/api/runs", { workflowId: made.body.data.id })).body.data?.runId;
  const ended = await until("all files are there", async () => {
    const { body } = await api("GET", `/api/runs/${run}`);
    return ["completed", "failed"].includes(body.status) && body;
  });
  expect(ended.status, ended.errorMessage).toBe("completed");
});
afterAll(() => harness?.close());

// The first that was made is the last of the list.
const last = "sample_1.txt";

test("all files are listed by scrolling, and found by name", async () => {
  const { page } = person;
  await page.goto(`${harness.url}/files`);
  await page.getByRole("status").filter({ hasText: "The first 200 files" }).waitFor();
  await look(page, "many-files");
  await page.getByRole("searchbox", { name: "Search files" }).fill(`sample_${many}`);
  await page.getByRole("status").filter({ hasText: "1 file," }).waitFor();
  await page.getByRole("button", { name: `sample_${many}.txt`, exact: true }).waitFor();
  await page.getByRole("searchbox", { name: "Search files" }).fill("sample_1.t");
  await page.getByRole("button", { name: last, exact: true }).click();
  await page.getByRole("dialog", { name: last }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("searchbox", { name: "Search files" }).fill("");
  // By selectors, since roles are looked up in the whole page.
  const said = page.locator("p[role=status]");
  await until("the end of the list", async () => {
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    return (await said.allTextContents()).some((text) => text.startsWith(`${many.toLocaleString("en-US")} files,`));
  });
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await page.locator(`tr[aria-rowindex="${many + 1}"]`).waitFor();
  calm(page);
});

test("any file is picked for a run, and found by the palette", async () => {
  const { page, api } = person;
  const made = await api("POST", "/api/workflows", {
    name: "Reads files",
    definition: { inputs: { reads: { type: "files" } }, nodes: [{ id: "a", command: "true" }] },
  });
  await page.goto(`${harness.url}/workflows/${made.body.data.id}?run=1`);
  const dialog = page.getByRole("dialog", { name: "Run" });
  await dialog.getByRole("button", { name: "Choose files" }).click();
  const picker = page.getByRole("dialog", { name: "Files for reads" });
  await picker
    .getByRole("checkbox", { name: /^sample_/ })
    .first()
    .waitFor();
  await picker.getByRole("searchbox", { name: "Search files" }).fill("sample_1.t");
  await picker.getByRole("checkbox", { name: last }).check();
  await picker.getByRole("searchbox", { name: "Search files" }).fill("sample_77.t");
  await picker.getByRole("checkbox", { name: "sample_77.txt" }).check();
  await look(page, "picker");
  await picker.getByRole("button", { name: "Done" }).click();
  for (const name of [last, "sample_77.txt"]) await dialog.getByText(name, { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("Search workflows").fill("sample_1.t");
  await page.getByRole("option", { name: last }).click();
  await page.getByRole("row").filter({ hasText: last }).waitFor();
  calm(page);
});

test("files that are chosen while another one is uploaded stay chosen", async () => {
  const { page, api } = person;
  const made = await api("POST", "/api/workflows", {
    name: "Reads more",
    definition: { inputs: { reads: { type: "files" } }, nodes: [{ id: "a", command: "true" }] },
  });
  let letGo = () => {};
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const sending = new Promise<void>((resolve) => {
    void page.route("**/objects/**", async (route) => {
      resolve();
      await gate;
      await route.continue();
    });
  });
  await page.goto(`${harness.url}/workflows/${made.body.data.id}?run=1`);
  const dialog = page.getByRole("dialog", { name: "Run" });
  await dialog.getByRole("button", { name: "Choose files" }).click();
  const picker = page.getByRole("dialog", { name: "Files for reads" });
  const chooser = page.waitForEvent("filechooser");
  await picker.getByText("Drop files here to upload and use them").click();
  await (await chooser).setFiles([{ name: "mine.txt", mimeType: "text/plain", buffer: Buffer.from("mine") }]);
  await sending;
  await picker
    .getByRole("checkbox", { name: /^sample_/ })
    .first()
    .check();
  letGo();
  await picker.getByRole("checkbox", { name: "mine.txt", checked: true }).waitFor();
  await picker.getByRole("button", { name: "Done" }).click();
  await dialog.getByText("mine.txt", { exact: true }).waitFor();
  expect(await dialog.getByRole("button", { name: /^Remove / }).count()).toBe(2);
  calm(page);
});
