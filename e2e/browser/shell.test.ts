import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

const places = ["Workflows", "Runs", "Files", "Papers", "Chat", "Billing", "Team", "Account"];

test("every place is a link in the rail, and a page when loaded by its address", async () => {
  const { page } = await harness.person("Ada Okoye");
  await page.goto(harness.url);
  for (const place of places) {
    await page.getByRole("navigation").getByRole("link", { name: place, exact: true }).click();
    await page.getByRole("heading", { name: place, level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/${place.toLowerCase()}`);
    await page.reload();
    await page.getByRole("heading", { name: place, level: 1 }).waitFor();
  }
  calm(page);
});

test("what is not there is said to be so: by the server, by the app, by a page", async () => {
  const { page } = await harness.person("Cy Dead");
  const response = await page.goto(`${harness.url}/no/such/page`);
  expect(response?.status()).toBe(404);
  await page.getByText("Page not found").waitFor();
  await page.goto(`${harness.url}/billing/no/such/page`);
  await page.getByText("Page not found").waitFor();
  await look(page, "not-found");
  await page.goto(`${harness.url}/workflows/wf_nothing`);
  const refusal = page.getByRole("alert").filter({ hasText: "No such workflow" });
  await refusal.waitFor();
  expect((await refusal.boundingBox())?.width).toBeLessThan(700);
  calm(page);
});

test("the palette goes where its words say", async () => {
  const { page } = await harness.person("Bea Ito");
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("heading", { name: "Workflows", level: 1 }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("Search workflows").fill("bill");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Billing", level: 1 }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.getByRole("heading", { name: "Team", level: 1 }).waitFor();
  calm(page);
});

test("single keys do nothing behind a dialog, and can be turned off", async () => {
  const { page } = await harness.person("Kay Stroke");
  await page.goto(`${harness.url}/account`);
  await page.getByRole("button", { name: "New token" }).click();
  const dialog = page.getByRole("dialog", { name: "New access token" });
  await dialog.waitFor();
  for (const key of ["g", "t", "?"]) await page.keyboard.press(key);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("checkbox", { name: /single-key shortcuts/ }).uncheck();
  await look(page, "account-shortcuts");
  await page.getByRole("heading", { name: "Account", level: 1 }).click(); // away from the checkbox
  for (const key of ["g", "t", "?"]) await page.keyboard.press(key);
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: "Search and commands" }).waitFor();
  expect(page.url()).toBe(`${harness.url}/account`);
  calm(page);
});

test("a page is printed without the sidebar and its buttons", async () => {
  const { page } = await harness.person("Prin Ter");
  await page.goto(`${harness.url}/billing`);
  await page.getByText("Credits left").waitFor();
  await page.emulateMedia({ media: "print" });
  expect(await page.getByRole("navigation", { name: "Main" }).isVisible()).toBe(false);
  expect(await page.getByRole("button", { name: "Add budget" }).isVisible()).toBe(false);
  expect((await page.locator("#content").boundingBox())?.x).toBe(0);
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.getByRole("button", { name: "Open menu" }).isVisible()).toBe(false);
  calm(page);
});
