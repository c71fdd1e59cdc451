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
  await page.goto(`${harness.url}/operator`);
  await page.getByText("Only operators of this installation").waitFor();
  await harness.shell(`millrace admin user set-operator ${ada.email}`, { MILLRACE_DATA: harness.data });

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
  await page.getByRole("region", { name: "Chores" }).getByText("fine").first().waitFor();
  await page.getByText("No errors").waitFor();
  await page.getByText("Apache-2.0").waitFor();
  expect((await page.content()).toLowerCase()).not.toContain("sesame");
  await look(page, "operator");
  await page.setViewportSize({ width: 390, height: 844 });
  await until("nothing is wider than the screen", () =>
    page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
  );
  calm(page);
});
