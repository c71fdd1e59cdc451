// From nothing to a completed run, as somebody new would; and what the app
// says when the server is away.
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible, calm, Harness, look } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

test("sign up, run the first example, see it complete", async () => {
  const { page } = await harness.visitor();
  await page.goto(harness.url);
  await page.waitForURL(/\/sign-in\?next=/);
  await page
    .getByRole("link", { name: /account|sign up/i })
    .first()
    .click();
  await page.getByLabel("Name").fill("Noor Haddad");
  await page.getByLabel("Email").fill("noor@example.org");
  await page.getByLabel("Password", { exact: true }).fill("correct horse battery");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.waitForURL(/\/workflows/);

  const first = page.getByRole("region", { name: "First steps" });
  await first.waitFor();
  await look(page, "first-steps");
  await first.getByRole("button", { name: "Run now" }).click();
  await page.waitForURL(/\/runs\/run_/);
  await page.getByRole("navigation").getByRole("link", { name: "Workflows" }).click();
  await first.getByText("It works. Now adapt it").waitFor();
  await first.getByRole("link", { name: "Open canvas" }).click();
  await page.waitForURL(/\/workflows\/wf_/);
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("link", { name: /^Completed/ }).waitFor();
  expect(await first.count()).toBe(0);
  calm(page);
});

test("without a connection the page says so, and catches up by itself", async () => {
  const { page, context } = await harness.person("Ola Berg");
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("heading", { name: "Workflows", level: 1 }).waitFor();
  await context.setOffline(true);
  await page.getByText("You're offline.").waitFor();
  await accessible(page, "offline");
  await context.setOffline(false);
  await page.getByText("You're offline.").waitFor({ state: "detached" });
});

test("the keyboard alone goes everywhere", async () => {
  const { page } = await harness.person("Kim Ree");
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("heading", { name: "Workflows", level: 1 }).waitFor();
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to content");
  await page.getByRole("button", { name: "New workflow" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("By keys");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await page.evaluate(() => document.activeElement?.textContent)).toContain("New workflow");
  calm(page);
});

test("a choice of theme stays, and is there before the first paint", async () => {
  const { page } = await harness.person("Uli Dark");
  await page.goto(`${harness.url}/account`);
  await page.getByLabel("Theme", { exact: true }).selectOption("dark");
  expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
  await page.reload({ waitUntil: "commit" });
  await page.waitForFunction(() => document.body !== null);
  expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
  calm(page);
});

test("a second factor is set up, and asked for", async () => {
  const { page } = await harness.person("Sec Ond");
  await page.goto(`${harness.url}/account`);
  await page.getByRole("button", { name: "Set up or turn off" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Your password").fill("correct horse battery");
  await dialog.getByRole("button", { name: "Continue" }).click();
  await dialog.getByRole("img", { name: "QR code of the secret" }).waitFor();
  await look(page, "second-factor");
  await dialog.getByLabel("Code from the app").fill("000000");
  await dialog.getByRole("button", { name: "Turn on" }).click();
  await dialog.getByRole("alert").waitFor();
  calm(page);
});
