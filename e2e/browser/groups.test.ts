import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

test("an operator maps groups at a provider to teams", async () => {
  const ada = await harness.person("Ada Field");
  const { page } = ada;
  const { id } = (await ada.api("GET", "/api/me")).body.data.team;
  await page.goto(`${harness.url}/operator`);
  const dialog = page.getByRole("dialog");
  const add = async (group: string, team: string) => {
    await page.getByRole("button", { name: "Add rule" }).click();
    await dialog.getByRole("textbox", { name: "Group" }).fill(group);
    await dialog.getByRole("combobox", { name: "Team ID" }).fill(team);
    await dialog.getByRole("combobox", { name: "Role" }).selectOption("admin");
    await dialog.getByRole("button", { name: "Add rule" }).click();
  };
  await page.getByText("No rules yet").waitFor();
  await add("lab-heads", "team_nobody");
  await page.getByText("A rule names a team that does not exist").first().waitFor();
  await dialog.getByRole("combobox", { name: "Team ID" }).fill(id);
  await dialog.getByRole("button", { name: "Add rule" }).click();
  await page.getByRole("cell", { name: "lab-heads", exact: true }).waitFor();
  await page
    .getByRole("region", { name: "Groups and teams" })
    .getByRole("cell", { name: "Ada Field's team" })
    .waitFor();
  await look(page, "groups");
  await page.setViewportSize({ width: 390, height: 844 });
  await until("nothing is wider than the screen", () =>
    page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
  );
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole("button", { name: "Remove the rule for lab-heads" }).click();
  await page.getByText("No rules yet").waitFor();
  const list = await harness.shell("millrace admin group-mapping list", { MILLRACE_DATA: harness.data });
  expect(list.stdout).not.toContain("lab-heads");
  calm(page);
});
