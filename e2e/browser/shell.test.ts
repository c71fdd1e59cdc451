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
