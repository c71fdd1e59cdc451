import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

test("a secret, a program's token, and both of them in the audit log", async () => {
  const ada = await harness.person("Ada Field");
  const { page } = ada;
  await page.goto(`${harness.url}/team`);
  await page.getByRole("button", { name: "Secrets" }).click();
  await page.getByText("No secrets yet").waitFor();
  await page.getByRole("button", { name: "New secret" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Name" }).fill("HF_TOKEN");
  await dialog.getByLabel("Value").fill("hf_never_shown_again");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row").filter({ hasText: "HF_TOKEN" }).waitFor();
  expect(await page.content()).not.toContain("hf_never_shown_again");
  await look(page, "secrets");

  await page.goto(`${harness.url}/team`);
  await page.getByRole("button", { name: "New service account" }).click();
  await dialog.getByRole("textbox", { name: "Name" }).fill("nightly");
  await dialog.getByRole("button", { name: "Create service account" }).click();
  await page.getByRole("button", { name: "New token for nightly" }).click();
  await dialog.getByRole("textbox", { name: "Name" }).fill("cron");
  await dialog.getByRole("button", { name: "Create token" }).click();
  const token = (await dialog.getByRole("code").textContent()) ?? "";
  await page.keyboard.press("Escape");
  await look(page, "service-accounts");
  const answer = await fetch(`${harness.url}/api/runs`, { headers: { Authorization: `Bearer ${token.trim()}` } });
  expect(answer.status).toBe(200);

  await page.goto(`${harness.url}/audit`);
  const row = (what: string) => page.getByRole("row").filter({ hasText: what });
  await row("secret set").getByText("HF_TOKEN").waitFor();
  await row("token created").waitFor();
  await look(page, "audit");
  await page.getByRole("combobox", { name: "Subject" }).selectOption("Secrets");
  await until("only secrets are listed", async () => (await page.getByRole("row").count()) === 2);
  await row("secret set").getByRole("button", { name: "Ada Field" }).click();
  await page.getByText("Only actions by Ada Field.").waitFor();
  await row("secret set").waitFor();
  const waits = page.waitForEvent("download");
  await page.getByRole("button", { name: "CSV" }).click();
  expect((await waits).suggestedFilename()).toBe("audit.csv");
  calm(page);
});
