// From nothing to a completed run, as somebody new would; and what the app
// says when the server is away.
import { createHmac } from "node:crypto";
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

test("a choice of theme stays, and is there before the first paint; paper is light", async () => {
  const { page } = await harness.person("Uli Dark");
  await page.goto(`${harness.url}/account`);
  await page.getByLabel("Theme", { exact: true }).selectOption("dark");
  expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
  await page.reload({ waitUntil: "commit" });
  await page.waitForFunction(() => document.body !== null);
  expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
  await page.getByRole("heading", { name: "Account", level: 1 }).waitFor();
  const ink = () => page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--ink"));
  const dark = await ink();
  await page.emulateMedia({ media: "print" });
  expect(await ink()).not.toBe(dark);
  calm(page);
});

test("a second factor is turned on and off, and the page says which", async () => {
  const { page } = await harness.person("Sec Ond");
  await page.goto(`${harness.url}/account`);
  await page.getByText("This server sends no email").waitFor();
  expect(await page.getByText("Open the link that was sent").count()).toBe(0);
  await page.getByRole("button", { name: "Set up…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Your password").fill("correct horse battery");
  await dialog.getByRole("button", { name: "Continue" }).click();
  await dialog.getByRole("img", { name: "QR code of the secret" }).waitFor();
  await look(page, "second-factor");
  await dialog.getByLabel("Code from the app").fill("000000");
  await dialog.getByRole("button", { name: "Turn on" }).click();
  await dialog.getByRole("alert").waitFor();
  await dialog.getByLabel("Code from the app").fill(codeOf((await dialog.locator("code").first().textContent()) ?? ""));
  await dialog.getByRole("button", { name: "Turn on" }).click();
  const recovery = await dialog.getByRole("listitem").first().innerText();
  await dialog.getByRole("button", { name: "I've saved them" }).click();
  await page.getByRole("button", { name: "Turn off…" }).click();
  await dialog.getByLabel("Your password").fill("correct horse battery");
  await look(page, "second-factor-off");
  await dialog.getByLabel("Code from the app").fill(recovery);
  await dialog.getByRole("button", { name: "Turn off" }).click();
  await page.getByRole("button", { name: "Set up…" }).waitFor();
  calm(page);
});

/** codeOf is what an authenticator app shows for a secret: RFC 6238. */
function codeOf(secret: string): string {
  const bits = [...secret].map((each) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(each).toString(2).padStart(5, "0"));
  const key = Uint8Array.from(bits.join("").match(/.{8}/g) ?? [], (byte) => Number.parseInt(byte, 2));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const hash = createHmac("sha1", key).update(counter).digest();
  const number = hash.readUInt32BE((hash.at(-1) ?? 0) & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, "0");
}
