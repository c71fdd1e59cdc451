// Accounts of the installation: what operators do with them, and how people leave and are invited.
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, type Person, until } from "./harness.ts";

let harness: Harness;
let ada: Person; // the first, who operates the installation
beforeAll(async () => {
  harness = await Harness.open();
  ada = await harness.person("Ada Field");
});
afterAll(() => harness?.close());

async function signIn({ page, email }: Person): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password", { exact: true }).fill("correct horse battery");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** manage chooses an action for somebody's account. */
async function manage(name: string, action: string): Promise<void> {
  await ada.page.getByRole("button", { name: `Manage the account of ${name}` }).click();
  await ada.page.getByRole("menuitem", { name: action }).click();
}

test("an operator suspends somebody who edits, resumes them, and deletes their account", async () => {
  const eve = await harness.person("Eve Wood");
  const made = await eve.api("POST", "/api/workflows", { name: "Trim" });
  await eve.page.goto(`${harness.url}/workflows/${made.body.data.id}`);
  await eve.page.getByText("Saved").first().waitFor();

  const { page } = ada;
  await page.goto(`${harness.url}/operator`);
  const accounts = page.getByRole("region", { name: "Accounts" }).first();
  const dialog = page.getByRole("dialog");
  await accounts.getByRole("cell", { name: "Eve Wood's team (owner)", exact: true }).waitFor();
  await page.getByLabel("Search accounts").fill("nobody-here");
  await page.getByText("No accounts found").waitFor();
  await page.getByLabel("Search accounts").fill("EVE.wood");
  await page.getByRole("button", { name: "Manage the account of Ada Field" }).waitFor({ state: "detached" });
  await manage("Eve Wood", "Suspend…");
  await look(page, "account-suspend");
  await dialog.getByRole("button", { name: "Suspend account" }).click();
  await accounts.getByText("suspended since").waitFor();
  await look(page, "accounts");

  await eve.page.waitForURL(/\/sign-in\?next=/);
  await signIn(eve);
  await eve.page.getByText("This account is suspended").waitFor();

  await manage("Eve Wood", "Resume…");
  await dialog.getByRole("button", { name: "Resume account" }).click();
  await accounts.getByText("suspended since").waitFor({ state: "detached" });
  await signIn(eve);
  await eve.page.getByText("Saved").first().waitFor();

  await manage("Eve Wood", "Delete…");
  const remove = dialog.getByRole("button", { name: "Delete account" });
  expect(await remove.getAttribute("aria-disabled")).toBe("true");
  await dialog.getByLabel(/To confirm/).fill(eve.email);
  await look(page, "account-delete");
  await remove.click();
  await page.getByText("No accounts found").waitFor();

  const log = page.getByRole("region", { name: "Audit log" }).last();
  await log.getByText("operator account deleted").waitFor();
  await log.scrollIntoViewIfNeeded();
  await look(page, "installation-audit");
  await page.getByLabel("Subject").selectOption("Notices");
  await page.getByText("No entry matches these filters.").waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await until("nothing is wider than the screen", () =>
    page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
  );
  await page.setViewportSize({ width: 1440, height: 900 });
  calm(page);
  calm(eve.page);
});

test("what an operator cannot do is said in words", async () => {
  const owner = await harness.person("Grace Hill");
  const { token } = await invite(owner, "lin.moor@example.org");
  const { page } = ada;
  await harness.person("Lin Moor", token);
  await page.goto(`${harness.url}/operator`);
  await page.getByRole("button", { name: "Manage the account of Ada Field" }).click();
  await page.getByText("Another operator can suspend you.").waitFor();
  await page.getByText("Two-factor authentication is off.").waitFor();
  await page.keyboard.press("Escape");
  await manage("Grace Hill", "Delete…");
  await page.getByLabel(/To confirm/).fill(owner.email);
  await page.getByRole("button", { name: "Delete account" }).click();
  await page.getByText('The account is the last owner of "Grace Hill\'s team"').waitFor();
  calm(page);
});

/** invite asks somebody into the team, and gives the token of the link. */
async function invite(by: Person, email: string): Promise<{ token: string }> {
  const { link } = (await by.api("POST", "/api/team/invite", { email, role: "member" })).body.data;
  return { token: /invitations\/([\w-]+)/.exec(link)?.[1] ?? "" };
}

test("somebody deletes their own account, once others have an owner", async () => {
  const ida = await harness.person("Ida Berg");
  const shared = (await ida.api("POST", "/auth/teams", { name: "Shared lab" })).body.data.id;
  const { token } = await (async () => {
    const path = `/auth/teams/${shared}/invitations`;
    const { link } = (await ida.api("POST", path, { email: "max.tal@example.org", role: "member" })).body.data;
    return { token: /invitations\/([\w-]+)/.exec(link)?.[1] ?? "" };
  })();
  const max = await harness.person("Max Tal", token);
  const me = (await ida.api("GET", "/api/me")).body.data.id;
  const other = (await max.api("GET", "/api/me")).body.data.id;

  const { page } = ida;
  await page.goto(`${harness.url}/account`);
  await page.getByRole("button", { name: "Delete account" }).click();
  const dialog = page.getByRole("dialog");
  const erased = dialog.getByRole("list", { name: "Teams that are erased" });
  await erased.getByText("Ida Berg's team").waitFor();
  expect(await erased.getByRole("listitem").count()).toBe(1);
  const remove = dialog.getByRole("button", { name: "Delete my account" });
  expect(await remove.getAttribute("aria-disabled")).toBe("true");
  await dialog.getByLabel("To confirm, type your user ID").fill(me);
  await remove.click();
  await dialog.getByText('The account is the last owner of "Shared lab"').waitFor();
  await look(page, "delete-account");

  await ida.api("PATCH", `/auth/teams/${shared}/members/${other}`, { role: "owner" });
  await remove.click();
  await page.waitForURL(/\/sign-in$/);
  await signIn(ida);
  await page.getByText("The email address or the password is wrong").waitFor();
  calm(page);
});

test("an owner invites a list, and sees what became of each line", async () => {
  const ola = await harness.person("Ola Rand");
  await harness.verify(ola.email);
  const { page } = ola;
  await page.goto(`${harness.url}/team`);
  await page.getByRole("button", { name: "Invite several" }).click();
  const dialog = page.getByRole("dialog");
  const chooser = page.waitForEvent("filechooser");
  await dialog.getByRole("button", { name: /CSV file/ }).click();
  const text = `email,role\npia@example.org,admin\nnot an address\n${ola.email}\n`;
  await (await chooser).setFiles({ name: "people.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await until("the file is in the field", async () =>
    (await dialog.getByLabel("Email addresses").inputValue()).includes("pia@example.org"),
  );
  await look(page, "invite-several");
  await dialog.getByRole("button", { name: "Invite", exact: true }).click();
  await dialog.getByText("Invited 1 person").waitFor();
  await dialog.getByRole("row", { name: /2 pia@example.org admin invited/ }).waitFor();
  await dialog.getByRole("row", { name: /3 not an address .*is not an email address/ }).waitFor();
  await dialog.getByRole("row", { name: /already a member/ }).waitFor();
  await look(page, "invite-several-results");
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.getByRole("region", { name: "Invitations" }).getByText("pia@example.org").waitFor();
  calm(page);
});
