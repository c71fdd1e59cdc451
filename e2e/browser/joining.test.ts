// What somebody sees who comes by a share link.
import { afterAll, beforeAll, test } from "vitest";
import { calm, Harness, look, type Person } from "./harness.ts";

let harness: Harness;
let ada: Person;
let workflow: string;
beforeAll(async () => {
  harness = await Harness.open();
  ada = await harness.person("Ada Okoye");
  workflow = (await ada.api("POST", "/api/workflows", { name: "Trim and align" })).body.data.id;
});
afterAll(() => harness?.close());

const invite = async (more: object = {}) =>
  (await ada.api("POST", "/api/collab/invites", { workflowId: workflow, role: "viewer", ...more })).body.data;

test("a guest gives a name and is inside", async () => {
  const { link } = await invite();
  const { page } = await harness.visitor();
  await page.goto(link);
  await page.getByLabel("Your name").fill("Gus");
  await look(page, "join");
  await page.getByRole("button", { name: "Open workflow" }).click();
  await page.getByText("Trim and align").first().waitFor();
  calm(page);
});

test("a link that was cut is said to be so", async () => {
  const { page } = await harness.visitor();
  await page.goto(`${harness.url}/join`);
  await page.getByText("This link is incomplete").waitFor();
  calm(page);
});

test("a link that was taken back, or is full, ends calmly", async () => {
  const { link, id } = await invite();
  await ada.api("DELETE", `/api/collab/invites?id=${id}`);
  const { page } = await harness.visitor();
  await page.goto(link);
  await page.getByRole("button", { name: "Open workflow" }).click();
  await page.getByText("The team revoked it.").waitFor();
  await look(page, "join-revoked");

  const full = await invite({ maxUses: 1 });
  const first = await harness.visitor();
  await first.page.goto(full.link);
  await first.page.getByRole("button", { name: "Open workflow" }).click();
  await first.page.getByText("Trim and align").first().waitFor();
  const second = await harness.visitor();
  await second.page.goto(full.link);
  await second.page.getByRole("button", { name: "Open workflow" }).click();
  await second.page.getByText("This link has reached its guest limit").waitFor();
  calm(page);
  calm(second.page);
});
