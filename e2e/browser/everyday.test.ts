import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible, calm, Harness, look, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open("--sandbox", "none");
});
afterAll(() => harness?.close());

async function narrow(page: Awaited<ReturnType<Harness["visitor"]>>["page"]): Promise<void> {
  await page.setViewportSize({ width: 390, height: 844 });
  await until("nothing is wider than the screen", () =>
    page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
  );
  await page.setViewportSize({ width: 1440, height: 900 });
}

test("the bell rings while one looks at another page, and reading it silences it", async () => {
  const { page, api } = await harness.person("Nora Bell");
  await page.goto(`${harness.url}/notifications`);
  await page.getByText("No notifications yet").waitFor();
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("link", { name: "Notifications", exact: true }).waitFor();
  const made = await api("POST", "/api/workflows", {
    name: "Breaks",
    definition: { nodes: [{ id: "boom", command: "exit 3" }] },
  });
  await api("POST", "/api/runs", { workflowId: made.body.data.id });
  await page.getByRole("link", { name: "Notifications: 1 unread" }).click();
  const row = page.getByRole("listitem").filter({ hasText: "Breaks" });
  await row.getByText("(unread)").waitFor({ state: "attached" });
  await accessible(page, "notifications");
  await look(page, "notifications");
  await narrow(page);
  await row.getByRole("link").click();
  await page.waitForURL(/\/runs\/run_/);
  await page.getByRole("link", { name: "Notifications", exact: true }).waitFor();
  calm(page);
});

test("a budget is set, holds, and is said on the pages", async () => {
  const { page, api } = await harness.person("Bea Count");
  const made = await api("POST", "/api/workflows", {
    name: "Costs",
    definition: { nodes: [{ id: "a", command: "true" }] },
  });
  const run = { workflowId: made.body.data.id, tags: ["pilot"] };
  const first = await api("POST", "/api/runs", run);
  await until("the run has ended", async () => {
    const { body } = await api("GET", `/api/runs/${first.body.data.runId}`);
    return body.status === "completed";
  });

  await page.goto(`${harness.url}/billing`);
  const budgets = page.locator("section", { has: page.getByRole("heading", { name: "Budgets" }) });
  await budgets.getByText("No budgets.").waitFor();
  await budgets.getByRole("button", { name: "Add budget" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "Applies to" }).selectOption("tag");
  await dialog.getByRole("textbox", { name: "Tag" }).fill("pilot");
  await dialog.getByRole("spinbutton", { name: "Credits per month" }).fill("0.01");
  await dialog.getByRole("checkbox", { name: /Hard limit/ }).check();
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "hidden" });
  await budgets.getByText("pilot").waitFor();
  await budgets.getByText("hard limit").waitFor();
  await budgets.getByText(/Forecast for the month|Budget spent/).waitFor();
  expect((await api("POST", "/api/runs", run)).body.code).toBe("budget_exhausted");

  const costs = page.locator("section", { has: page.getByRole("heading", { name: "Run costs" }) });
  await costs.getByRole("combobox", { name: "Group by" }).selectOption("tag");
  await costs.getByRole("cell", { name: "pilot" }).waitFor();
  const download = page.waitForEvent("download");
  await costs.getByRole("button", { name: "CSV" }).click();
  expect(readFileSync(await (await download).path(), "utf8")).toContain("pilot");
  await accessible(page, "budgets");
  await look(page, "budgets");
  await narrow(page);
  await budgets.getByRole("button", { name: "Remove" }).click();
  await budgets.getByText("No budgets.").waitFor();
  calm(page);
});

test("a webhook for a chat shows its message before it is made", async () => {
  const { page } = await harness.person("Hugo Chat");
  await page.goto(`${harness.url}/team/webhooks`);
  await page.getByRole("button", { name: "New webhook" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "URL" }).fill("https://hooks.example.org/services/1");
  await dialog.getByRole("combobox", { name: "Format" }).selectOption("discord");
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("allowed_mentions").waitFor();
  await look(page, "webhook-preview");
  await narrow(page);
  await dialog.getByRole("button", { name: "Edit this message" }).click();
  await dialog.getByRole("textbox", { name: /Template/ }).fill('{"content": "{{nothing}}"}');
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog
    .getByText(/stands for nothing/)
    .first()
    .waitFor();
  await dialog.getByRole("textbox", { name: /Template/ }).fill('{"content": "{{title}}"}');
  await dialog.getByRole("button", { name: "Create webhook" }).click();
  await dialog.getByText("Webhook created").waitFor();
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.getByText("for Discord").waitFor();
  await page.getByRole("button", { name: "Deliveries" }).click();
  await page.getByRole("dialog").getByText("No deliveries yet.").waitFor();
});
