import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Harness, type Json, look, type Person, until, wholeChromium } from "./harness.ts";
import { attacks, pageWith, reach } from "./hostile.ts";
import { listen } from "./listener.ts";

let harness: Harness;
let ada: Person;
beforeAll(async () => {
  harness = await Harness.openIn(wholeChromium, "--runs-per-minute", "1000");
  ada = await harness.person("Ada Reeve");
});
afterAll(() => harness?.close());

const root = new URL("../../", import.meta.url).pathname;

/** upload puts a file into the team's files, and gives its key. */
async function upload(name: string, body: string): Promise<string> {
  const bytes = new TextEncoder().encode(body);
  const { body: answer } = await ada.api("POST", "/api/files/presign", {
    filename: name,
    contentType: "text/plain",
    size: bytes.length,
  });
  const put = await fetch(answer.data.url, { method: "PUT", headers: { "Content-Type": "text/plain" }, body: bytes });
  expect(put.status).toBe(200);
  return answer.data.key;
}

/** made runs a step that gives these texts as files of these names, and one more that a command packs. */
async function made(files: Record<string, string>, packed?: string): Promise<{ runId: string; outputs: Json[] }> {
  const names = Object.keys(files);
  const keys = await Promise.all(names.map((name, at) => upload(`in${at}.txt`, files[name] ?? "")));
  const definition = {
    inputs: { files: { type: "files", required: true } },
    nodes: [
      {
        id: "make",
        name: "Make",
        command: `set -- $INPUT_files\n${names.map((name) => `cp "$1" '${name}'; shift`).join("\n")}\n${packed ? `gzip -c '${packed}' > '${packed}.gz'` : ""}`,
        inputs: { files: { from: "inputs.files" } },
        outputs: Object.fromEntries(
          [...names, ...(packed ? [`${packed}.gz`] : [])].map((name, at) => [`o${at}`, { path: name }]),
        ),
      },
    ],
  };
  const workflow = await ada.api("POST", "/api/workflows", { name: "Make files", definition });
  expect(workflow.status, JSON.stringify(workflow.body)).toBe(201);
  const started = await ada.api("POST", "/api/runs", { workflowId: workflow.body.data.id, inputs: { files: keys } });
  expect(started.status, JSON.stringify(started.body)).toBe(202);
  const { runId } = started.body.data;
  await until("the run has completed", async () => {
    const { body } = await ada.api("GET", `/api/runs/${runId}`);
    if (body.status === "failed") throw new Error(body.errorMessage);
    return body.status === "completed";
  });
  const { body } = await ada.api("GET", `/api/runs/${runId}/outputs`);
  return { runId, outputs: body.data };
}

const mapped = <T>(from: Record<string, T>, to: (value: T) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(from).map(([key, value]) => [key, to(value)]));

const urlOf = (outputs: Json[], name: string): string => outputs.find((output) => output.name === name).reportUrl;

test("a report of MultiQC draws its plots in its frame", async () => {
  const { stdout } = await promisify(execFile)(`${root}scripts/multiqc-report`);
  const { runId } = await made({ "multiqc_report.html": readFileSync(stdout.trim(), "utf8") });
  const { page } = ada;
  await page.goto(`${harness.url}/runs/${runId}`);
  const results = page.getByRole("region", { name: "Results" });
  const frame = results.frameLocator("iframe[title='multiqc_report.html']");
  await frame.locator("#general_stats_table_table tbody tr").first().waitFor();
  await results.getByRole("link", { name: "Open report" }).click();
  await page.waitForURL(/\/report\?key=/);
  const whole = page.frameLocator("iframe[title='multiqc_report.html']");
  await whole.locator(".js-plotly-plot svg.main-svg").first().waitFor();
  await look(page, "report-multiqc");
  expect(await whole.locator("body").evaluate(() => self.origin)).toBe("null");
});

test("nothing that a hostile report tries gets out, in a frame or by itself", async () => {
  const stranger = await listen();
  const { staying, leaving } = attacks(stranger.host, harness.url);
  const tries = {
    "all that stay": pageWith(...Object.values(staying)),
    ...mapped(leaving, (script) => pageWith(script)),
  };
  const names = Object.keys(tries);
  const files = Object.fromEntries(Object.values(tries).map((page, at) => [`${at}.html`, page]));
  const { runId, outputs } = await made({ ...files, "reach.html": pageWith(reach) });
  const { context } = ada;
  const pages: Page[] = [];
  context.on("page", (page) => pages.push(page));

  // First that the stranger hears at all, by a page that may do what it likes.
  const free = await context.newPage();
  await free.goto(`http://${stranger.host}/`).catch(() => {});
  await until("the stranger hears", async () => stranger.heard.length > 0);
  await free.close();

  for (const [at, name] of names.entries()) {
    // Continuous integration has each of them in a frame and by itself.
    for (const bare of process.env.MILLRACE_TEST_ALL || at === 0 ? [false, true] : [at % 2 === 0]) {
      stranger.heard.length = 0;
      pages.length = 0;
      const page = await context.newPage();
      // Chromium ends the process of a page that makes WebRTC connections in a
      // frame of its own: nothing gets out that way either.
      const ended = new Promise<void>((resolve) => page.once("crash", () => resolve()));
      const { key, reportUrl } = outputs.find((output) => output.name === `${at}.html`);
      const address = bare ? reportUrl : `${harness.url}/runs/${runId}/report?key=${encodeURIComponent(key)}`;
      const opened = async () => {
        await page.goto(address);
        // A page that tries to leave may be gone already: its frame then shows the browser's refusal.
        await (bare ? page.locator("body") : page.frameLocator("iframe").locator("body")).waitFor({
          state: "attached",
        });
      };
      await Promise.race([opened(), ended]);
      // There is nothing to wait for: it must not happen.
      await new Promise((resolve) => setTimeout(resolve, at === 0 ? 4000 : 500));
      expect(stranger.heard, `${name}, ${bare ? "by itself" : "in a frame"}`).toEqual([]);
      expect(pages.length, `${name} opened a page`).toBe(1);
      expect(
        page.url().startsWith(harness.url) || page.url().startsWith("chrome-error:"),
        `${name} is at ${page.url()}`,
      ).toBe(true);
      await page.close();
    }
  }
  expect((await ada.api("GET", "/api/me")).status).toBe(200); // still signed in

  const page = await context.newPage();
  for (const bare of [false, true]) {
    const { key } = outputs.find((output) => output.name === "reach.html");
    await page.goto(
      bare ? urlOf(outputs, "reach.html") : `${harness.url}/runs/${runId}/report?key=${encodeURIComponent(key)}`,
    );
    const body = bare ? page.locator("body") : page.frameLocator("iframe").locator("body");
    await until("its script has run", async () => body.getAttribute("data-ran"));
    expect(JSON.parse((await body.getAttribute("data-found")) ?? "{}")).toEqual({
      origin: "null",
      cookie: "SecurityError",
      storage: "SecurityError",
      database: "SecurityError",
      caches: "SecurityError",
      parent: bare ? "none" : "SecurityError",
      frame: "null",
    });
  }
  await page.close();
  await stranger.close();
});

test("the files of a hostile report do nothing in previews either", async () => {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100"><rect width="200" height="100" fill="teal"/><script>top.document.title = "taken"</script></svg>`;
  const notebook = {
    nbformat: 4,
    cells: [
      { cell_type: "markdown", source: "# Notes\n<img src=x onerror=\"top.document.title='taken'\">" },
      {
        cell_type: "code",
        source: "print(1)",
        outputs: [
          { output_type: "stream", text: "one\n" },
          { output_type: "display_data", data: { "text/html": "<script>top.document.title='taken'</script>" } },
        ],
      },
    ],
  };
  const paper =
    "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj\ntrailer<</Root 1 0 R>>\n";
  const files = {
    "paper.pdf": paper,
    "drawing.svg": svg,
    "notes.md": "# Heading\n\nSome **bold** words.\n\n<script>top.document.title='taken'</script>",
    "look.ipynb": JSON.stringify(notebook),
    "numbers.csv": "name,count\nb,10\na,9\nc,\n",
  };
  const { runId } = await made(files, "numbers.csv");
  const page = await ada.context.newPage();
  await page.goto(`${harness.url}/runs/${runId}`);
  const results = page.getByRole("region", { name: "Results" });
  await results.getByRole("img", { name: "drawing.svg" }).waitFor();
  await until("the picture is drawn", () =>
    results.getByRole("img", { name: "drawing.svg" }).evaluate((img) => (img as HTMLImageElement).naturalWidth > 0),
  );
  await results.getByRole("heading", { name: "Heading" }).waitFor();
  const cells = results.getByRole("region", { name: "Notebook look.ipynb" });
  await cells.getByRole("heading", { name: "Notes" }).waitFor();
  await cells.getByText("Interactive output not shown.").waitFor();
  const table = results.getByRole("region", { name: "First rows of numbers.csv", exact: true });
  const firsts = () => table.getByRole("row").evaluateAll((rows) => rows.slice(1).map((row) => row.textContent));
  expect(await firsts()).toEqual(["b10", "a9", "c"]);
  await table.getByRole("button", { name: "count" }).focus();
  await page.keyboard.press("Enter");
  expect(await firsts()).toEqual(["a9", "b10", "c"]);
  await page.keyboard.press("Enter");
  expect(await firsts()).toEqual(["b10", "a9", "c"]);
  await table.getByRole("columnheader", { name: "count" }).and(page.locator("[aria-sort=descending]")).waitFor();
  await look(page, "run-results");
  expect(await page.title()).not.toContain("taken");

  await page.getByRole("tab", { name: "Outputs" }).click();
  await page.getByRole("button", { name: "numbers.csv.gz", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("cell", { name: "10" }).waitFor();
  await dialog.getByText(/decompressed/).waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "paper.pdf", exact: true }).click();
  await dialog.locator("iframe[title='paper.pdf']").waitFor();
  await until("the browser's viewer has it", async () =>
    page.frames().some((frame) => frame.url().startsWith("chrome-extension:")),
  );
});
