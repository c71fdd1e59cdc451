// Two people edit one workflow, and one of them loses the network for more than a
// minute: nobody tells the browser, and connections just fall silent. Chromium logs
// what it cannot load, so the console of that person may complain.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, example, Harness, type Json, until } from "./harness.ts";
import { Network } from "./network.ts";

let harness: Harness;
let network: Network;
beforeAll(async () => {
  harness = await Harness.open();
  network = await Network.open(harness.url);
});
afterAll(async () => {
  await harness?.close();
  await network?.close();
});

const minute = 60_000;

const node = (page: Page, name: string) => page.locator(".react-flow__node", { hasText: name });
const field = (page: Page) => page.locator(".cm-content").first();
type Place = "Control+Home" | "Control+End";

async function goTo(page: Page, step: string, at: Place): Promise<void> {
  await node(page, step).click();
  await page.getByRole("tab", { name: "Step" }).click(); // a step that was selected before leaves the tab as it is
  await field(page).click();
  await page.keyboard.press(at);
}

/** opened waits until all of the editor that is used here has been sent. */
async function opened(page: Page): Promise<void> {
  await page.getByRole("tab", { name: "Code" }).click();
  await page.getByLabel("Definition", { exact: true }).waitFor();
  await goTo(page, "Silent", "Control+End");
}

async function type(page: Page, step: string, at: Place, text: string): Promise<void> {
  await goTo(page, step, at);
  await page.keyboard.type(text);
}

async function note(page: Page, at: Place, text: string): Promise<void> {
  await node(page, "To share.").click();
  await page.getByLabel("Note", { exact: true }).press(at);
  await page.keyboard.type(text);
  await page.keyboard.press("Tab");
  await node(page, text.trim()).waitFor();
}

async function rename(page: Page, from: string, to: string): Promise<void> {
  await node(page, from).click();
  await page.getByLabel("Name", { exact: true }).fill(to);
  await page.getByLabel("Name", { exact: true }).press("Enter");
  await node(page, to).waitFor();
}

async function setId(page: Page, step: string, to: string): Promise<void> {
  await node(page, step).click();
  await page.getByLabel("Step ID").fill(to);
  await page.getByLabel("Step ID").press("Enter");
  await until("the step has the ID", async () => new URL(page.url()).searchParams.get("node") === to);
}

/** applyCode replaces some text in the code of the workflow, and applies that. */
async function applyCode(page: Page, from: string, to: string): Promise<void> {
  await page.getByRole("tab", { name: "Code" }).click();
  await page.getByLabel("Definition", { exact: true }).click();
  await page.keyboard.press("Control+f");
  await page.getByRole("textbox", { name: "Find" }).fill(from);
  await page.getByRole("textbox", { name: "Replace" }).fill(to);
  await page.getByRole("button", { name: "replace all" }).click();
  await page.getByRole("button", { name: "Apply", exact: true }).click();
  await page.getByText("Applied to the canvas.").waitFor();
}

/** typeOn types at the end of a step, one word of each person after the other, for as long as asked. */
async function typeOn(people: { page: Page; typed: string }[], step: string, on: () => boolean): Promise<void> {
  for (const { page } of people) await goTo(page, step, "Control+End");
  for (let number = 1; on(); number++) {
    for (const person of people) {
      const word = `${number} `;
      await person.page.keyboard.type(word, { delay: 100 });
      person.typed += word;
    }
  }
}

test("one of two people is offline for a minute: whatever both type, rename and apply as code survives", async () => {
  const ada = { ...(await harness.person("Ada Both")), typed: "# ada " };
  const before = example("word-count").definition;
  const remark = { id: "remark", type: "note", text: "To share.", position: { x: 0, y: 400 } };
  const silent = { id: "silent", name: "Silent", type: "task", position: { x: 400, y: 400 } };
  const made = await ada.api("POST", "/api/workflows", {
    ...example("word-count"),
    definition: { ...before, nodes: [...before.nodes, remark, silent] },
  });
  const { id } = made.body.data;
  await harness.verify(ada.email);
  expect((await ada.api("POST", "/api/team/invite", { email: "bo@example.org", role: "member" })).status).toBe(201);
  const invitation = await harness.invitation("bo@example.org");
  const bo = { ...(await harness.person("Bo", invitation, network.proxy)), typed: "# bo " };
  await bo.api("POST", `/auth/teams/${ada.team}/activate`);
  for (const { page } of [ada, bo]) {
    await page.goto(`${harness.url}/workflows/${id}`);
    await page.getByText("Saved", { exact: true }).waitFor();
    await opened(page);
  }

  network.lose();
  const lost = Date.now();
  // Before anybody can know that the network is gone.
  await type(bo.page, "Add up", "Control+End", "# bo typed\n");
  await type(ada.page, "Add up", "Control+Home", "# ada typed\n");
  await type(ada.page, "Silent", "Control+End", ada.typed);
  await type(bo.page, "Silent", "Control+End", bo.typed);
  await note(ada.page, "Control+Home", "Ada wrote. ");
  await setId(ada.page, "Add up", "ada_id");
  await setId(bo.page, "Count one text", "bo_id");
  await applyCode(ada.page, "Count one text", "Ada applied");
  await applyCode(bo.page, "Words to show", "Bo applied");
  await bo.page.getByText("Offline: saved on this device").waitFor();
  await type(bo.page, "Count one text", "Control+Home", "# bo typed here, too\n");
  await note(bo.page, "Control+End", " Bo wrote.");
  await applyCode(bo.page, "type: integer", "type: number");
  await rename(bo.page, "Add up", "Bo named");
  await typeOn([ada, bo], "Silent", () => Date.now() - lost < 1.1 * minute);
  expect(JSON.stringify((await ada.api("GET", `/api/workflows/${id}`)).body)).not.toMatch(/bo typed|# bo|Bo /);
  network.find();

  const saved = await until("the server has what Bo did", async () => {
    const { definition, problems } = (await ada.api("GET", `/api/workflows/${id}`)).body.data;
    return JSON.stringify(definition).includes("Bo named") && { ...definition, problems };
  });
  expect(saved.problems).toEqual([]);
  const steps: Record<string, Json> = Object.fromEntries(saved.nodes.map((each: Json) => [each.id, each]));
  expect(Object.keys(steps).sort()).toEqual(["ada_id", "bo_id", "remark", "silent"]);
  expect(steps.remark.text).toBe("Ada wrote. To share. Bo wrote.");
  expect([ada.typed + bo.typed, bo.typed + ada.typed]).toContain(steps.silent.command);
  expect(steps.ada_id.name).toBe("Bo named");
  expect(steps.ada_id.command).toBe(`# ada typed\n${before.nodes[1].command}# bo typed\n`);
  expect(steps.bo_id.name).toBe("Ada applied");
  expect(steps.bo_id.command).toBe(`# bo typed here, too\n${before.nodes[0].command}`);
  expect(saved.edges[0]).toMatchObject({ source: "bo_id", target: "ada_id" });
  expect(saved.parameters.top).toMatchObject({ title: "Bo applied", type: "number" });
  for (const { page } of [ada, bo]) {
    await node(page, "Bo named").waitFor();
    await node(page, "Ada applied").waitFor();
    await node(page, "Ada wrote. To share. Bo wrote.").waitFor();
    await node(page, "Silent").click();
    await until("the command has the words of both", async () => {
      const text = await field(page).innerText();
      return text.includes(ada.typed.trim()) && text.includes(bo.typed.trim());
    });
    await page.getByText("Saved", { exact: true }).waitFor();
  }
  calm(ada.page);
});
