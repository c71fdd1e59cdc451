// Each room in a browser: empty, filled, and what can be done in it.
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, type Person, until } from "./harness.ts";

let harness: Harness;
let ada: Person;
beforeAll(async () => {
  harness = await Harness.open();
  ada = await harness.person("Ada Okoye");
});
afterAll(() => harness?.close());

const heading = (person: Person, name: string) => person.page.getByRole("heading", { name, level: 1 }).waitFor();

test("empty rooms teach what belongs into them", async () => {
  const { page } = ada;
  for (const [path, words] of [
    ["/workflows", "Welcome. Start with an example"],
    ["/runs", "No runs yet"],
    ["/files", "No files yet"],
    ["/chat", "Chat isn't set up on this server"],
  ] as const) {
    await page.goto(harness.url + path);
    await page.getByText(words).waitFor();
    await look(page, `empty${path.replace("/", "-")}`);
  }
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("button", { name: "Skip" }).click();
  await page.getByText("Start from a template").waitFor();
  calm(page);
});

test("a template is run at a click, with its sample data", async () => {
  const { page } = ada;
  await page.goto(`${harness.url}/templates`);
  const card = page.getByRole("listitem").filter({ hasText: "Count words, map and reduce" });
  await card.waitFor();
  await look(page, "templates");
  await card.getByRole("button", { name: "Run example" }).click();
  await page.waitForURL(/\/runs\/run_/);
  const id = page.url().split("/").at(-1);
  await until("the run completes", async () => (await ada.api("GET", `/api/runs/${id}`)).body.status === "completed");
  calm(page);
});

test("the lists show what ran, and find it again", async () => {
  const { page } = ada;
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("link", { name: "Count words, map and reduce" }).waitFor();
  await page.getByRole("link", { name: /^Completed/ }).waitFor();
  await look(page, "workflows");
  await page.getByLabel("Search workflows").fill("words no such");
  await page.getByText("No results").waitFor();
  expect(page.url()).toContain("q=");
  await page.getByRole("button", { name: "Show all" }).click();
  await page.goto(`${harness.url}/runs?status=completed`);
  await page.getByRole("link", { name: "Count words, map and reduce" }).waitFor();
  await look(page, "runs");
  await page.getByLabel("State").selectOption("failed");
  await page.getByText("No results").waitFor();
  calm(page);
});

test("a workflow is made, copied, exported, imported and deleted", async () => {
  const { page } = ada;
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("button", { name: "New workflow" }).click();
  await look(page, "new-workflow");
  await page.getByLabel("Name", { exact: true }).fill("Trim reads");
  await page.getByRole("button", { name: "Create and open" }).click();
  await page.waitForURL(/\/workflows\/wf_/);
  await page.goto(`${harness.url}/workflows`);
  const menu = async (item: string) => {
    await page.getByRole("button", { name: "More for Trim reads", exact: true }).click();
    await page.getByRole("menuitem", { name: item }).click();
  };
  await menu("Duplicate");
  await page.getByRole("link", { name: "Trim reads (copy)" }).waitFor();
  const download = page.waitForEvent("download");
  await menu("Export as JSON");
  const file = await download;
  expect(file.suggestedFilename()).toBe("Trim reads.workflow.json");
  await menu("Delete");
  await page.getByRole("button", { name: "Delete workflow" }).click();
  await page.getByRole("link", { name: "Trim reads", exact: true }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Import" }).click();
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Drop JSON or YAML files here" }).click();
  await (await chooser).setFiles(await file.path());
  await page.waitForURL(/\/workflows\/wf_/);
  calm(page);
});

test("files are uploaded with progress, one is refused, and they are deleted together", async () => {
  const { page } = ada;
  await page.goto(`${harness.url}/files`);
  await heading(ada, "Files");
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Upload files" }).click();
  const csv = Buffer.from(`gene,count\n${"BRCA2,12\n".repeat(50)}`);
  await (await chooser).setFiles([
    { name: "counts.csv", mimeType: "text/csv", buffer: csv },
    { name: "reads.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(3 << 20, 7) },
    { name: "evil.sh", mimeType: "text/x-shellscript", buffer: Buffer.from("#!/bin/sh\n") },
  ]);
  const tray = page.getByRole("region", { name: "Uploads" });
  await tray.getByText("2 files uploaded, 1 failed").waitFor();
  await tray.getByText("evil.sh").waitFor();
  await tray.getByLabel("Failed").waitFor();
  expect(await tray.getByRole("button", { name: "Retry" }).count()).toBe(0);
  await look(page, "files-uploaded");
  await tray.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Preview counts.csv" }).click();
  await page.getByRole("cell", { name: "BRCA2" }).first().waitFor();
  await look(page, "file-preview");
  await page.getByRole("dialog").getByRole("button", { name: "Copy key" }).waitFor(); // guests give files by their keys
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByLabel("Select counts.csv").check();
  await page.getByLabel("Select reads.bin").check();
  await page.getByRole("button", { name: "Delete 2 files" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete 2 files" }).click();
  await page.getByRole("button", { name: "counts.csv", exact: true }).waitFor({ state: "detached" });
  calm(page);
});

test("credits are bought in the sandbox, and the page waits for them", async () => {
  const { page } = ada;
  await page.goto(`${harness.url}/billing`);
  await page.getByText("Credits left").waitFor();
  await page.getByRole("button", { name: "Buy for $10.00" }).waitFor();
  await look(page, "billing");
  await page.getByRole("button", { name: "Buy for $10.00" }).click();
  await page.waitForURL(/\/checkout\//);
  await page.getByRole("button", { name: "Pay" }).click();
  await page.getByRole("link", { name: "Back to Millrace" }).click();
  await page.waitForURL(/\/billing\/return/);
  await page.getByText("1,000 credits added").waitFor();
  await look(page, "billing-return");
  await page.getByRole("link", { name: "Go to billing" }).click();
  await page.getByRole("link", { name: /as PDF/ }).waitFor();
  await page.getByText("90 days").click();
  await page.waitForURL(/days=90/);
  calm(page);
});

test("somebody is invited, joins, and gets another role", async () => {
  const { page } = ada;
  await page.goto(`${harness.url}/team`);

  // No mail goes out before her own address is confirmed.
  await page.getByText("Confirm your email address").waitFor();
  await page.getByRole("button", { name: "Invite", exact: true }).click();
  await page.getByLabel("Email").fill("eve.holm@example.org");
  await page.getByRole("dialog").getByLabel("Role", { exact: true }).selectOption("viewer");
  await page.getByRole("button", { name: "Create invitation" }).click();
  await page.getByText(/\/invitations\/\w+/).waitFor();
  await page.getByText("This server sends no email.").waitFor();
  await look(page, "invitation-link");
  await page.keyboard.press("Escape");
  await harness.verify(ada.email);
  await page.reload();
  await page.getByRole("button", { name: "Invite", exact: true }).click();
  await page.getByLabel("Email").fill("bob.stein@example.org");
  await page.getByRole("button", { name: "Create invitation" }).click();
  const sent = page.getByRole("dialog", { name: "Send them this link" });
  await sent.getByText(/\/invitations\/\w+/).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("row", { name: /eve\.holm@example\.org.*viewer/ }).waitFor();
  await page.getByRole("cell", { name: "bob.stein@example.org", exact: true }).waitFor();
  await look(page, "team");
  const bob = await harness.person("Bob Stein", await harness.invitation("bob.stein@example.org"));
  await page.reload();
  const role = page.getByLabel("Role of Bob Stein");
  await role.selectOption("viewer");
  await page.getByText("Bob Stein is now viewer").waitFor();

  // As a viewer, Bob sees what he may not do, and why.
  await bob.page.goto(`${harness.url}/workflows`);
  await bob.page.getByRole("button", { name: /^Team:/ }).click();
  await bob.page.getByRole("menuitemradio", { name: /viewer/ }).click();
  const create = bob.page.getByRole("button", { name: "New workflow" });
  await expect.poll(() => create.getAttribute("aria-disabled")).toBe("true");
  await create.focus();
  await bob.page.getByRole("tooltip").filter({ hasText: "You are a viewer of this team." }).waitFor();
  calm(bob.page);
  calm(page);
});

test("sessions are listed, and signing out in one tab ends the other", async () => {
  const { page, context } = ada;
  await page.goto(`${harness.url}/account`);
  await page.getByText("this browser", { exact: true }).waitFor();
  await look(page, "account");
  const other = await context.newPage();
  await other.goto(`${harness.url}/files`);
  await other.getByRole("heading", { name: "Files", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).first().click();
  await page.waitForURL(/\/sign-in/);
  await other.waitForURL(/\/sign-in\?next=%2Ffiles/);
});

test("papers need no account", async () => {
  const { page } = await harness.visitor();
  await page.goto(`${harness.url}/papers`);
  await page.getByLabel("DOI of the paper").fill("not one");
  await page.getByText("Not a DOI").waitFor();
  await look(page, "papers-visitor");
  calm(page);
});
