// From a paper to a workflow, and the chat, with a model that speaks the
// chat-completions wire format.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look } from "./harness.ts";

let harness: Harness;
let model: Server;
let release: () => void = () => {};

beforeAll(async () => {
  model = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => {
      body += piece;
    });
    request.on("end", () => answer(body, response));
  });
  await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
  harness = await Harness.open(
    "--ai-base-url",
    `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`,
    "--ai-model",
    "a-model",
  );
});
afterAll(async () => {
  await harness?.close();
  model?.closeAllConnections();
  model?.close();
});

/**
 * The model writes half of an answer, unless it is to think first, and the rest when the test lets it. It explains
 * why runs fail, and cannot read papers.
 */
function answer(body: string, response: import("node:http").ServerResponse): void {
  const asked = JSON.parse(body);
  if (asked.response_format?.type === "json_object") {
    const said = { text: "The column is called “mass”.", edit: { field: "command", value: "echo mass" } };
    const message = { role: "assistant", content: JSON.stringify(said) };
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] }));
    return;
  }
  if (!asked.stream) {
    response.writeHead(503).end();
    return;
  }
  const chunk = (content: string) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "a-model", choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  if (!asked.messages.at(-1).content.startsWith("Think"))
    response.write(chunk("Use **zcat**:\n\n```bash\nzcat reads.fq.gz | wc -l\n"));
  release = () => {
    response.write(chunk("```\n\nand divide by four."));
    response.end("data: [DONE]\n\n");
  };
}

/** pdf is a page with lines of text, as small as a PDF can be. */
function pdf(lines: string[]): Buffer {
  const text = lines.map((line) => `(${line.replaceAll(/[()\\]/g, "\\$&")}) Tj T*`).join("\n");
  const content = `BT /F1 11 Tf 14 TL 50 780 Td\n${text}\nET`;
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
  ];
  let out = "%PDF-1.4\n";
  const offsets = objects.map((object, at) => {
    const offset = out.length;
    out += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const start = out.length;
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  return Buffer.from(
    `${out}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`,
    "latin1",
  );
}

const paper = pdf([
  "A transcriptome of the mill race",
  "Ada Okoye and Bea Ito",
  "Abstract",
  "We sequenced water from a mill race and describe what lives in it.",
  "Methods",
  "Adapters were trimmed from the raw reads with fastp 0.23.4 using default settings.",
  "Trimmed reads were aligned to the reference genome with BWA-MEM 0.7.17.",
  "Alignments were sorted and indexed with samtools 1.17.",
  "Variants were called with bcftools 1.17 and filtered by quality.",
  "Results",
  "Most reads aligned, and forty variants were found.",
]);

test("a visitor's PDF becomes methods with evidence, and after signing in a workflow", async () => {
  const { page } = await harness.visitor();
  await page.goto(`${harness.url}/papers`);
  await page.getByText("Free without an account, with a daily limit.").waitFor();
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Drop a PDF here" }).click();
  await (await chooser).setFiles({ name: "race.pdf", mimeType: "application/pdf", buffer: paper });
  await page.getByRole("heading", { name: "Methods" }).waitFor();
  await page.getByRole("heading", { name: /^A transcriptome of the mill race/ }).waitFor();
  await page.getByText("trimmed from the raw reads with fastp").first().waitFor();
  await page.getByRole("img", { name: /The steps of/ }).waitFor();
  await look(page, "paper");
  await page.getByRole("link", { name: "Sign in to open as workflow" }).click();

  await page
    .getByRole("link", { name: /account/i })
    .first()
    .click();
  await page.getByLabel("Name").fill("Vis Itor");
  await page.getByLabel("Email").fill("vis@example.org");
  await page.getByLabel("Password", { exact: true }).fill("correct horse battery");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.waitForURL(/\/papers\?/);
  await page.getByRole("button", { name: "Open as workflow" }).click();
  await page.waitForURL(/\/workflows\/wf_/);
  calm(page);
});

test("a file that is no paper is refused with a reason", async () => {
  const { page } = await harness.person("Pap Er");
  await page.goto(`${harness.url}/papers`);
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Drop a PDF here" }).click();
  await (await chooser).setFiles({ name: "no.pdf", mimeType: "application/pdf", buffer: Buffer.from("not a PDF") });
  await page.getByRole("alert").waitFor();
  await look(page, "paper-refused");
  calm(page);
});

test("an analysis that does not exist is refused once, beside how many are left", async () => {
  const { page } = await harness.person("No Paper");
  await page.goto(`${harness.url}/papers?id=an_nothing`);
  await page.getByRole("alert").first().waitFor();
  expect(await page.getByRole("alert").count()).toBe(1);
  await page.getByText(/^\d+ analyses left today\./).waitFor();
  expect(await page.getByText("Free without an account").count()).toBe(0);
  calm(page);
});

test("the chat about a run of another team of mine opens in that team", async () => {
  const eli = await harness.person("Eli Two");
  const { page } = eli;
  const made = await eli.api("POST", "/api/workflows", {
    name: "Numbat counts",
    definition: { nodes: [{ id: "step", command: "true" }] },
  });
  const run = (await eli.api("POST", "/api/runs", { workflowId: made.body.data.id })).body.data.runId;
  const lab = (await eli.api("POST", "/auth/teams", { name: "Numbat lab" })).body.data.id;
  await page.goto(`${harness.url}/chat?team=${lab}`);
  await page.getByRole("button", { name: "Team: Numbat lab" }).waitFor();
  await page.goto(`${harness.url}/chat?run=${run}`);
  await page.getByText("Switched to Eli Two's team, the team of this run.").waitFor();
  await page.getByText("Context: the run of Numbat counts.").waitFor();
  calm(page);
});

test("an answer streams, is shown as code, and can be stopped", async () => {
  const { page } = await harness.person("Cha Tty");
  await page.goto(`${harness.url}/chat`);
  await page.getByLabel("Your question").fill("How do I count reads?");
  await page.keyboard.press("Enter");
  await page.getByText("zcat reads.fq.gz | wc -l").waitFor();
  release();
  await page.getByText("and divide by four.").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  await look(page, "chat");
  await page.getByLabel("Your question").fill("And once more?");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("button", { name: "Send" }).waitFor();
  expect(await page.getByRole("alert").count()).toBe(0);
  await page.reload();
  await page.getByText("And once more?").waitFor();
  calm(page);
});

test("a conversation that is ended while the model thinks stays ended", async () => {
  const { page } = await harness.person("Cha Nged");
  await page.goto(`${harness.url}/chat`);
  await page.getByLabel("Your question").fill("Think about reads");
  await page.keyboard.press("Enter");
  await page.getByText("Thinking…").waitFor();
  await page.getByRole("button", { name: "New chat" }).click();
  await page.getByRole("button", { name: "Send" }).waitFor();
  expect(await page.getByText("Think about reads").count()).toBe(0);
  calm(page);
});

test("an answer that streams during a switch stays in its team", async () => {
  const cy = await harness.person("Cy Chats");
  const { page } = cy;
  await cy.api("POST", "/auth/teams", { name: "Potoroo lab" });
  const switchTo = async (name: string) => {
    await page.getByRole("button", { name: /^Team:/ }).click();
    await page.getByRole("menuitemradio", { name }).click();
    await page.getByRole("button", { name: `Team: ${name}` }).waitFor();
    await page.getByRole("navigation").getByRole("link", { name: "Chat", exact: true }).click();
    await page.getByLabel("Your question").waitFor();
  };
  await page.goto(`${harness.url}/chat`);
  await page.getByLabel("Your question").fill("How do I count reads?");
  await page.keyboard.press("Enter");
  await page.getByText("zcat reads.fq.gz | wc -l").waitFor();
  await switchTo("Potoroo lab");
  release();
  await page.getByText("Ask about your work").waitFor();
  expect(await page.getByText("zcat reads.fq.gz").count()).toBe(0);
  await switchTo("Cy Chats's team");
  await page.getByText("zcat reads.fq.gz | wc -l").waitFor();
  calm(page);
});

test("the model explains a failed run, and its edit is looked at, applied and run", async () => {
  const { page, api } = await harness.person("Ada Lindt");
  const step = { id: "weigh", name: "Weigh", type: "task", position: { x: 0, y: 0 }, command: "echo weight; exit 3" };
  const made = await api("POST", "/api/workflows", { name: "Weights", definition: { version: 1, nodes: [step] } });
  const started = await api("POST", "/api/runs", { workflowId: made.body.data.id });
  await page.goto(`${harness.url}/runs/${started.body.data.runId}`);
  const wrong = page.getByRole("region", { name: "What went wrong" });
  await wrong.getByRole("button", { name: "Explain" }).click();
  const explanation = wrong.getByRole("region", { name: "Explanation" });
  await explanation.getByText("The column is called “mass”.").waitFor();
  await explanation.getByText("- echo weight; exit 3").waitFor();
  await explanation.getByText("+ echo mass").waitFor();
  await look(page, "run-explained");
  await explanation.getByRole("link", { name: "Apply in the editor" }).click();
  await page.locator(".cm-content", { hasText: "echo mass" }).waitFor();
  await page.getByText("Saved", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Run from here" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("heading", { level: 1 }).getByText("Completed").waitFor();
  calm(page);
});
