import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

test("an operator looks after the installation, and sees nothing of what teams keep", async () => {
  const ada = await harness.person("Ada Field");
  const eve = await harness.person("Eve Wood");
  const { page } = ada;
  await eve.page.goto(`${harness.url}/operator`);
  await eve.page.getByText("Only operators of this installation").waitFor();

  const made = await eve.api("POST", "/api/workflows", {
    name: "Sesame flow",
    definition: { nodes: [{ id: "sesame", command: "sleep 600" }] },
  });
  await eve.api("POST", "/api/runs", { workflowId: made.body.data.id, name: "Sesame run" });

  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("button", { name: "Ada Field: your menu" }).click();
  await page.getByRole("menuitem", { name: "Installation" }).click();
  await page.getByRole("region", { name: "Workers" }).getByText("ready").waitFor();
  await page.getByRole("region", { name: "Queue" }).getByText("running").waitFor();
  await page.getByRole("region", { name: "Teams" }).getByText("Eve Wood").waitFor();
  await page.getByRole("region", { name: "Background jobs" }).getByText("OK").first().waitFor();
  await page.getByText("No errors").waitFor();
  await page.getByText("Apache-2.0").waitFor();
  expect((await page.content()).toLowerCase()).not.toContain("sesame");
  await look(page, "operator");
  await page.setViewportSize({ width: 390, height: 844 });
  await until("nothing is wider than the screen", () =>
    page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
  );
  await page.setViewportSize({ width: 1440, height: 900 });

  const workers = page.getByRole("region", { name: "Workers" });
  await workers.getByRole("button", { name: "Drain" }).click();
  await workers.getByText("draining").waitFor();
  await workers.getByRole("button", { name: "Resume" }).click();
  await workers.getByText("ready").waitFor();
  await page.getByRole("button", { name: "Manage Eve Wood's team" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Credits" }).fill("25");
  await dialog.getByRole("button", { name: "Add credits" }).click();
  await dialog.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Manage Eve Wood's team" }).click();
  await dialog.getByRole("button", { name: "Suspend team" }).click();
  await page.getByRole("region", { name: "Teams" }).getByText("suspended").waitFor();
  expect((await eve.api("POST", "/api/runs", { workflowId: made.body.data.id })).body.code).toBe("team_suspended");
  await page.getByRole("region", { name: "Queue" }).getByRole("button", { name: "End" }).click();
  await dialog.getByRole("button", { name: "End run" }).click();
  await page.getByText("Queue is empty").waitFor();
  await page.getByRole("button", { name: "Send test email" }).click();
  await page.getByText("Test email sent to your address").waitFor();
  calm(page);
});
