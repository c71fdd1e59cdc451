import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

test("an operator tells everybody something, and has new runs wait", async () => {
  const ada = await harness.person("Ada Field");
  const eve = await harness.person("Eve Wood");
  const { page: signIn } = await harness.visitor();
  await signIn.goto(`${harness.url}/sign-in`);
  await eve.page.goto(`${harness.url}/runs`);

  const { page } = ada;
  await page.goto(`${harness.url}/operator`);
  await page.getByRole("textbox", { name: "Text" }).fill("New disks <b>on Friday</b> from 18:00 UTC.");
  await page.getByRole("button", { name: "Show notice" }).click();
  // The audit log on this page names the notice, too.
  await page.locator("bdi").getByText("New disks <b>on Friday</b> from 18:00 UTC.").waitFor();
  for (const shown of [eve.page, signIn]) {
    await shown.getByText("New disks <b>on Friday</b> from 18:00 UTC.").waitFor({ timeout: 30_000 });
  }
  await look(eve.page, "notice");
  await look(signIn, "notice on the sign-in page");
  await signIn.getByRole("button", { name: "Dismiss notice" }).click();
  await signIn.goto(`${harness.url}/papers`);
  await signIn.getByRole("link", { name: "Sign in" }).waitFor();
  expect(await signIn.getByText("New disks").count()).toBe(0);

  await page.getByRole("textbox", { name: "Message" }).fill("Back at noon");
  await page.getByRole("button", { name: "Turn on" }).click();
  await page.getByRole("button", { name: "Turn off" }).waitFor();
  await look(page, "maintenance mode");
  await page.setViewportSize({ width: 390, height: 844 });
  await until("nothing is wider than the screen", () =>
    page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
  );
  await page.setViewportSize({ width: 1440, height: 900 });
  const made = await eve.api("POST", "/api/workflows", {
    name: "Waits",
    definition: { nodes: [{ id: "a", command: "true" }] },
  });
  const run = await eve.api("POST", "/api/runs", { workflowId: made.body.data.id });
  await eve.page.goto(`${harness.url}/runs/${run.body.data.runId}`);
  await eve.page.getByText("New runs wait until maintenance is over. Back at noon.").waitFor();
  await page.getByRole("button", { name: "Turn off" }).click();
  await page.getByRole("button", { name: "Turn on" }).waitFor();
  await eve.page.getByText("completed", { exact: false }).first().waitFor();
  await page.getByRole("button", { name: "Remove notice" }).click();
  await eve.page.getByText("New disks").waitFor({ state: "detached", timeout: 30_000 });
  calm(page);
});
