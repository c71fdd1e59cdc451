// A team's data is taken out whole, and taken away for good.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

test("an owner exports the team, then erases it by typing its id", async () => {
  const ada = await harness.person("Ada Okoye");
  const { page } = ada;
  await ada.api("POST", "/api/workflows", { name: "Trim and align" });
  await page.goto(`${harness.url}/account`);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export Ada Okoye's team" }).click();
  const exported = JSON.parse(readFileSync(await (await download).path(), "utf8"));
  expect(exported.data.complete).toBe(true);
  expect(exported.data.workflows[0].name).toBe("Trim and align");

  await page.getByRole("button", { name: "Erase Ada Okoye's team" }).click();
  const dialog = page.getByRole("dialog");
  await look(page, "erase");
  await dialog.getByLabel("To confirm, type the team ID").fill("team_wrong");
  const erase = dialog.getByRole("button", { name: "Erase everything" });
  expect(await erase.getAttribute("aria-disabled")).toBe("true");
  await dialog.getByLabel("To confirm, type the team ID").fill(ada.team);
  await erase.click();
  await page.getByRole("heading", { name: "You're not in a team" }).waitFor();
  await look(page, "no-team");
  calm(page);
});
