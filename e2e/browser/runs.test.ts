import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, example, Harness, type Json, look, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

async function start(person: Person, body: Json, run: Json = {}): Promise<{ workflowId: string; runId: string }> {
  const made = await person.api("POST", "/api/workflows", body);
  expect(made.status).toBe(201);
  const workflowId = made.body.data.id;
  const started = await person.api("POST", "/api/runs", { workflowId, ...run });
  expect(started.status).toBe(202);
  return { workflowId, runId: started.body.data.runId };
}

const ended = (person: Person, runId: string) =>
  until("the run has ended", async () => {
    const { body } = await person.api("GET", `/api/runs/${runId}`);
    return body.status === "queued" || body.status === "running" ? null : body;
  });

const node = (page: Page, name: string) => page.locator(".react-flow__node", { hasText: name });

test("from a template to its outputs, watched live", async () => {
  const { page } = await harness.person("Ada Brook");
  await page.goto(`${harness.url}/templates`);
  const card = page
    .getByRole("listitem")
    .filter({ has: page.getByRole("heading", { name: "Count words, map and reduce" }) });
  await card.getByRole("button", { name: "Run example" }).click();
  await page.waitForURL(/\/runs\/run_/);
  await node(page, "Add up").waitFor();
  // The graph follows the run without the page being loaded again.
  await node(page, "Add up")
    .getByText(/Completed/)
    .waitFor();
  await page.getByRole("heading", { level: 1 }).getByText("Completed").waitFor();
  await page.getByRole("tab", { name: "Outputs" }).click();
  await page.getByRole("button", { name: "words.tsv", exact: true }).click();
  const preview = page.getByRole("dialog");
  await preview.getByRole("table").waitFor();
  await look(page, "run-preview");
  await preview.getByRole("button", { name: "Close" }).click();
  await page.getByRole("tab", { name: "Timeline" }).click();
  await page.getByRole("button", { name: /Add up/ }).click();
  await page.getByRole("region", { name: "Step Add up" }).getByText("Completed").waitFor();
  await look(page, "run-completed");
  for (const tab of ["Log", "Events", "Resources", "Compare", "Details", "Outputs"]) {
    await page.getByRole("tab", { name: tab }).click();
    await page.getByRole("tab", { name: tab, selected: true }).waitFor();
  }
  const address = page.url().replace(/\?.*/, "");
  await page.goto(`${address}?tab=events`);
  await page.getByText("The run has completed", { exact: true }).waitFor();
  // On a phone not all tabs fit; the chosen one is in view.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${address}?tab=details`);
  const details = page.getByRole("tab", { name: "Details", selected: true });
  await until("the tab is in view", async () => {
    const box = await details.boundingBox();
    return box !== null && box.x >= 0 && box.x + box.width <= 390;
  });
  await page.getByText("Submitted").waitFor();
  calm(page);
});

test("a failed run opens on its cause, which is fixed and run again", async () => {
  const ada = await harness.person("Ada Stone");
  const { page } = ada;
  const { runId } = await start(ada, example("failure"));
  await ended(ada, runId);
  await page.goto(`${harness.url}/runs/${runId}`);
  const wrong = page.getByRole("region", { name: "What went wrong" });
  await wrong.getByText("line 3: three is not a number").waitFor();
  await wrong.getByText("exit status 3").waitFor();
  await wrong.getByRole("heading", { name: "“Add up” exited with status 3" }).waitFor();
  await page.getByRole("region", { name: "Step Add up" }).waitFor();
  await look(page, "run-failed");
  await wrong.getByRole("button", { name: "View in log" }).click();
  const line = page.getByRole("region", { name: "Log" }).getByText("line 3: three is not a number");
  await line.waitFor();
  await until("the log is in view", async () => {
    const box = await line.boundingBox();
    return box !== null && box.y > 0 && box.y < 900;
  });

  // Retrying as it was fails again, and reuses what had succeeded.
  await wrong.getByRole("button", { name: "Retry from failure" }).click();
  await page.waitForURL((url) => !url.pathname.endsWith(runId));
  await page.getByRole("heading", { level: 1 }).getByText("Failed").waitFor();

  // Fixed in the editor, where the step is chosen already.
  await page.getByRole("region", { name: "What went wrong" }).getByRole("link", { name: "Edit step" }).click();
  await page.locator(".cm-content", { hasText: "is not a number" }).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.type('awk "{s += NR} END {print s}" "$INPUT_numbers" > sum.txt');
  await page.getByText("Saved", { exact: true }).waitFor();

  // The step alone, with the files of its last run.
  const trial = page.getByRole("region", { name: "Test this step" });
  await trial.getByRole("button", { name: "Test this step" }).click();
  await trial.getByText("Completed").waitFor();
  await trial.getByText("sum.txt").first().waitFor();
  await look(page, "editor-test-step");

  await page.getByRole("button", { name: "Run from here" }).click();
  const plan = page.getByRole("dialog").getByRole("region", { name: "What will be reused" });
  await plan.getByText(/^Reuses 1 step \(Prepare\)/).waitFor();
  await plan.getByText("Add up: it failed").waitFor();
  await look(page, "run-from-here");
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL(/\/runs\/run_/);
  await page.getByRole("heading", { level: 1 }).getByText("Completed").waitFor();
  // Only what the fix touches was computed again.
  await node(page, "Prepare").getByRole("img", { name: "Reused from an earlier run" }).waitFor();
  await node(page, "Add up")
    .getByText(/Completed/)
    .waitFor();
  expect(await node(page, "Add up").getByRole("img", { name: "Reused from an earlier run" }).count()).toBe(0);
  await page.getByRole("tab", { name: "Compare" }).click();
  await page.getByText("Changed Add up: command").waitFor();
  await look(page, "run-compare");

  // The page of the run that failed offers the same, and what was.
  await page.goto(`${harness.url}/runs/${runId}`);
  await wrong.getByRole("button", { name: "Retry without changes" }).waitFor();
  await wrong.getByRole("region", { name: "What will be reused" }).getByText("Add up: it failed").waitFor();
  await look(page, "run-fixed");
  await wrong.getByRole("button", { name: "Run from here" }).click();
  await page.waitForURL((url) => !url.pathname.endsWith(runId));
  await page.getByRole("heading", { level: 1 }).getByText("Completed").waitFor();
  calm(page);
});

test("a failed run suggests an edit, which is made at a click and taken back by undo", async () => {
  const ada = await harness.person("Ada Quill");
  const { page } = ada;
  const command = "import no_such_module_here";
  const step = { id: "read", name: "Read", type: "task", position: { x: 0, y: 0 }, interpreter: "python3", command };
  const { runId, workflowId } = await start(ada, { name: "Module", definition: { version: 1, nodes: [step] } });
  await ended(ada, runId);
  const suggested = page
    .getByRole("list", { name: "What may help" })
    .getByText(/^No module named no_such_module_here: add/);
  const apply = page.getByRole("link", { name: "Apply in the editor" });
  const packages = async () => {
    const { body } = await ada.api("GET", `/api/workflows/${workflowId}`);
    return JSON.stringify(body.data.definition.nodes[0].environment?.pip ?? null);
  };
  const become = (wanted: string) =>
    until(`the packages are ${wanted}`, async () => (await packages()) === wanted || null);

  await page.goto(`${harness.url}/runs/${runId}`);
  await suggested.waitFor();
  await look(page, "run-suggestion");
  await apply.click();
  await page.getByText("Applied the suggestion").waitFor();
  await become('["no_such_module_here"]');
  await page.getByRole("button", { name: "Undo" }).last().click();
  await become("null");

  // The edit is made once: not by a reload, and not over what was changed since.
  await page.reload();
  await page.getByText("Saved", { exact: true }).waitFor();
  expect(await packages()).toBe("null");
  const changed = { ...step, environment: { pip: ["numpy"] } };
  const put = { definition: { version: 1, nodes: [changed] } };
  expect((await ada.api("PUT", `/api/workflows/${workflowId}`, put)).status).toBe(200);
  await page.goto(`${harness.url}/runs/${runId}`);
  await apply.click();
  await page.getByText("The step has changed since that run").waitFor();
  expect(await packages()).toBe('["numpy"]');
  calm(page);
});

test("a hundred thousand lines are scrolled, searched as a whole, and coloured", async () => {
  const ada = await harness.person("Ada Ridge");
  const { page } = ada;
  const command = `seq -f 'line %.0f of the log' 1 100000; printf '\\033[31mred words\\033[0m and plain\\n'`;
  const { runId } = await start(ada, {
    name: "Many lines",
    definition: { version: 1, nodes: [{ id: "talk", name: "Talk", type: "task", position: { x: 0, y: 0 }, command }] },
  });
  await ended(ada, runId);
  await page.goto(`${harness.url}/runs/${runId}?tab=log`);
  const log = page.getByRole("region", { name: "Log" });
  await log.getByText("red words").waitFor();
  expect(await log.locator("span.text-danger").innerText()).toBe("red words");
  // Few of the lines are elements at any time.
  expect(await log.locator("[data-index]").count()).toBeLessThan(200);
  await page.getByLabel("Search the log").fill("line 4242 of");
  await log.getByText("line 4242 of the log").waitFor();
  await page.getByText("1 of 1 line", { exact: true }).waitFor();
  await page.getByLabel("Search the log").fill("");
  await log.evaluate((element) => element.scrollTo(0, 0));
  await log.getByText("line 1 of the log").waitFor();
  await look(page, "run-log");
  // A link to a line opens there.
  await page.goto(`${harness.url}/runs/${runId}?tab=log&line=50000`);
  const linked = log.getByText("line 50000 of the log");
  await linked.waitFor();
  await until("the line is in view", () =>
    linked.evaluate((line) => {
      const box = line.getBoundingClientRect();
      return box.top >= 0 && box.bottom <= window.innerHeight;
    }),
  );
  await page.getByRole("button", { name: "Link to line 50003" }).click();
  // The address names the log that the line is in, and another log has no such line.
  const search = () => new URL(page.url()).searchParams;
  expect([search().get("line"), search().get("node")]).toEqual(["50003", "none"]);
  await page.getByRole("combobox", { name: "Log of" }).selectOption("Talk");
  await until("the address names the step", async () => search().get("node") === "talk");
  await log.getByText("red words").waitFor();
  expect(search().has("line")).toBe(false);
  await log.evaluate((element) => element.scrollTo(0, 0));
  await page.getByRole("button", { name: "Link to line 2", exact: true }).click();
  expect([search().get("line"), search().get("node")]).toEqual(["2", "talk"]);
  await page.getByRole("button", { name: "Close" }).first().click();
  await until("no step is chosen", async () => search().get("node") === "none");
  expect(search().has("line")).toBe(false);
  calm(page);
});

test("a running run is followed, and cancelled", async () => {
  const ada = await harness.person("Ada Glen");
  const { page } = ada;
  const command = "for i in $(seq 1 6000); do echo tick $i; sleep 0.1; done";
  const { runId } = await start(ada, {
    name: "Slow and steady",
    definition: {
      version: 1,
      nodes: [
        { id: "wait", name: "Wait", type: "task", position: { x: 0, y: 0 }, command },
        { id: "after", name: "After", type: "task", position: { x: 320, y: 0 }, command: "true" },
      ],
      edges: [{ id: "e1", source: "wait", target: "after" }],
    },
  });
  await page.goto(`${harness.url}/runs/${runId}?tab=log`);
  // The newest lines stay in view, wherever the pointer is, until somebody scrolls up.
  const log = page.getByRole("region", { name: "Log" });
  const newest = async () => Number(/\d+(?=\s*$)/.exec(await log.innerText())?.[0] ?? 0);
  await until("ticks come", async () => (await newest()) >= 5);
  await log.hover();
  // More lines than are drawn below those in view.
  const seen = await newest();
  await until("the newest lines are in view", async () => (await newest()) >= seen + 60);
  await page.mouse.wheel(0, -200);
  await page.getByRole("button", { name: /^Jump to latest/ }).click();
  const later = await newest();
  await until("the newest lines are in view again", async () => (await newest()) >= later + 60);
  await node(page, "Wait")
    .getByText(/Running/)
    .waitFor();
  await look(page, "run-running");
  await page.getByRole("tab", { name: "Resources" }).click();
  await page.getByRole("img", { name: "CPU and memory over time" }).waitFor();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("button", { name: "Cancel run" }).click();
  await page.getByRole("heading", { level: 1 }).getByText("Cancelled").waitFor();
  await page.getByRole("button", { name: "Retry", exact: true }).waitFor();
  calm(page);
});

test("the run dialog checks what it is given, and estimates", async () => {
  const ada = await harness.person("Ada Heath");
  const { page } = ada;
  const made = await ada.api("POST", "/api/workflows", {
    name: "Asks for things",
    definition: {
      version: 1,
      parameters: {
        count: { type: "integer", minimum: 1, maximum: 9, title: "How many" },
        kind: { type: "string", enum: ["fast", "slow"], default: "fast" },
      },
      inputs: { reads: { type: "file", required: true } },
      nodes: [
        {
          id: "show",
          name: "Show",
          type: "task",
          command: 'echo "$PARAM_count $PARAM_kind"; cat "$INPUT_reads"',
          inputs: { reads: { from: "inputs.reads" } },
        },
      ],
    },
  });
  await page.goto(`${harness.url}/workflows/${made.body.data.id}?run=1`);
  const dialog = page.getByRole("dialog", { name: "Run" });
  await dialog.getByRole("button", { name: /^Start/ }).click();
  await dialog.getByText("Choose a file.").waitFor();
  await dialog.getByLabel("How many").fill("12");
  await dialog.getByText("At most 9.").waitFor();
  await dialog.getByLabel("How many").fill("7");
  await dialog.getByText("credits/hour").waitFor();
  await dialog.getByText("Custom").click();
  await dialog.getByLabel("vCPU", { exact: true }).fill("900");
  await dialog.getByLabel("GB", { exact: true }).fill("3600");
  await dialog.getByText(/^This server has .* The run gets the whole machine, and is billed for 900 vCPU/).waitFor();
  await dialog.getByText("This size isn't available").waitFor();
  await look(page, "run-dialog-refused");
  await dialog.getByText("Standard").click();
  await dialog.getByRole("button", { name: "Choose a file" }).click();
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("dialog", { name: "Files for reads" }).getByText("Drop files here").click();
  await (await chooser).setFiles({ name: "reads.txt", mimeType: "text/plain", buffer: Buffer.from("the content\n") });
  await page
    .getByRole("dialog", { name: "Files for reads" })
    .getByRole("checkbox", { name: "reads.txt", checked: true })
    .waitFor();
  await page.getByRole("button", { name: "Done" }).click();

  // The same run from a terminal, as it is copied.
  await ada.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await dialog.getByText("Show CLI command").click();
  await look(page, "run-dialog-command");
  const { token } = (await ada.api("POST", "/auth/token")).body.data;
  for (const [at, way] of ["Copy CLI command", "Copy as curl"].entries()) {
    await dialog.getByRole("button", { name: way }).click();
    await dialog.getByRole("button", { name: "Copied" }).waitFor();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    await harness.shell(command, { MILLRACE_TOKEN: token });
    await until(`${way}, and it runs`, async () => {
      const runs = (await ada.api("GET", `/api/runs?workflowId=${made.body.data.id}&status=completed`)).body.data;
      return runs.length === at + 1;
    });
    await dialog.getByRole("button", { name: way }).waitFor();
  }
  await dialog.getByRole("button", { name: /^Start/ }).click();
  await page.waitForURL(/\/runs\/run_/);
  await page.getByRole("heading", { level: 1 }).getByText("Completed").waitFor();
  await page.getByRole("tab", { name: "Log" }).click();
  await page.getByRole("region", { name: "Log" }).getByText("7 fast").waitFor();
  await page.getByRole("region", { name: "Log" }).getByText("the content").waitFor();
  calm(page);
});
