import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { calm, Harness, look, type Person, until } from "./harness.ts";

const opened: Harness[] = [];
afterAll(async () => {
  await Promise.all(opened.map((each) => each.close()));
});

async function open(...flags: string[]): Promise<Harness> {
  const harness = await Harness.open(...flags);
  opened.push(harness);
  return harness;
}

async function operator(harness: Harness, name: string): Promise<Person> {
  const person = await harness.person(name);
  await harness.shell(`millrace admin user set-operator --force ${person.email}`, { MILLRACE_DATA: harness.data });
  return person;
}

async function workflow({ api }: Person): Promise<string> {
  const made = await api("POST", "/api/workflows", {
    name: "Counts",
    definition: { nodes: [{ id: "count", command: "true" }] },
  });
  return made.body.data.id;
}

const section = (page: Page, name: string) =>
  page.locator("section", { has: page.getByRole("heading", { name, exact: true }) });

async function narrow(page: Page): Promise<void> {
  await page.setViewportSize({ width: 390, height: 844 });
  await until("nothing is wider than the screen", () =>
    page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
  );
  await page.setViewportSize({ width: 1440, height: 900 });
}

test("an operator sets a team's quotas, its members see them, and they refuse runs", async () => {
  const harness = await open();
  const ada = await operator(harness, "Ada Field");
  const eve = await harness.person("Eve Wood");
  const id = await workflow(eve);

  await ada.page.goto(`${harness.url}/operator`);
  await ada.page.getByRole("button", { name: "Manage Eve Wood's team" }).click();
  const dialog = ada.page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "vCPU hours a month", exact: true }).fill("100");
  await dialog.getByRole("textbox", { name: "vCPU hours a month per person" }).fill("0.01");
  await dialog.getByRole("textbox", { name: "Storage in GB" }).fill("2");
  await dialog.getByRole("textbox", { name: "Executors" }).fill("local");
  await dialog.getByRole("textbox", { name: "Slurm account" }).fill("genomics");
  await look(ada.page, "quotas of a team");
  await dialog.getByRole("button", { name: "Save quotas" }).click();
  await dialog.waitFor({ state: "hidden" });
  await section(ada.page, "Teams").getByText("0 of 100").waitFor();

  await eve.page.goto(`${harness.url}/billing`);
  const quotas = section(eve.page, "Quotas");
  await quotas.getByText("0 of 100 vCPU hours").waitFor();
  await quotas.getByText("0 of 0.01 vCPU hours").waitFor();
  await quotas.getByText("of 2 GB").waitFor();
  await quotas.getByText("local", { exact: true }).waitFor();
  await quotas.getByText(/starts again on/).waitFor();
  await look(eve.page, "billing with quotas");
  await narrow(eve.page);

  await eve.page.goto(`${harness.url}/files`);
  await eve.page.getByText(/of 2\.0 GB|of 2 GB/).waitFor();

  await eve.page.goto(`${harness.url}/workflows/${id}?run=1`);
  const refusal = eve.page.getByRole("dialog").getByText(/^The person's quota of vCPU hours for this month/);
  await refusal.waitFor();
  const sentence = await refusal.innerText();
  for (const part of ["0 of 0.01 hours", "renews on 1 ", "an operator of the installation can raise it"]) {
    expect(sentence).toContain(part);
  }
  await look(eve.page, "run refused by a quota");
  await narrow(eve.page);
  const refused = await eve.api("POST", "/api/runs", { workflowId: id });
  expect(refused.status).toBe(402);
  expect(refused.body.code).toBe("quota_exhausted");

  await eve.page.getByRole("dialog").getByRole("link", { name: "See plans and credits" }).click();
  await quotas.getByText("0 of 0.01 vCPU hours").waitFor();
  calm(ada.page);
  calm(eve.page);
});

test("an operator sets what new teams begin with", async () => {
  const harness = await open();
  const ada = await operator(harness, "Ada Field");
  await ada.page.goto(`${harness.url}/operator`);
  const form = section(ada.page, "New teams");
  await form.getByRole("textbox", { name: "vCPU hours a month", exact: true }).fill("7");
  await form.getByRole("textbox", { name: "Plan" }).fill("pro");
  await form.getByRole("button", { name: "Save defaults" }).click();
  await ada.page.getByText("Teams that are created from now on begin with this").waitFor();
  await look(ada.page, "what new teams begin with");
  await narrow(ada.page);
  await ada.page.reload();
  await until("the form shows what was saved", async () => {
    const typed = await form.getByRole("textbox", { name: "vCPU hours a month", exact: true }).inputValue();
    return typed === "7";
  });

  const eve = await harness.person("Eve Wood");
  expect((await eve.api("GET", "/api/billing/quotas")).body.data.monthlyVcpuHours).toBe(7);
  expect((await ada.api("GET", "/api/billing/quotas")).body.data.monthlyVcpuHours).toBe(null);
  calm(ada.page);
});

/** money is what no page says where nothing is charged. */
const money =
  /\bcredits?\b|\bprices?\b|\btop-?ups?\b|\binvoices?\b|\bbilling\b|\bbilled\b|\bbudgets?\b|\bspen[dt]|\bcosts?\b|[$€]\d/i;

async function free(page: Page, where: string): Promise<void> {
  await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
  const texts = await page.locator("body").innerText();
  const found = texts.split("\n").filter((line) => money.test(line));
  expect(found, where).toEqual([]);
}

test("without billing, no page has a price", async () => {
  const harness = await open("--billing", "off");
  const ada = await operator(harness, "Ada Field");
  const { page } = ada;
  const { page: visitor } = await harness.visitor();
  await visitor.goto(`${harness.url}/sign-in`);
  await visitor.getByRole("heading", { level: 1 }).waitFor();
  await free(visitor, "the sign-in page");

  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("link", { name: "Quotas" }).waitFor();
  await page.getByRole("heading", { level: 1 }).waitFor();
  await free(page, "the welcome page");
  await look(page, "free welcome");

  const id = await workflow(ada);
  await page.goto(`${harness.url}/workflows/${id}?run=1`);
  await page.getByRole("dialog").getByRole("group", { name: "Size" }).waitFor();
  await free(page, "the dialog of a run");
  await look(page, "free run dialog");
  const { runId } = (await ada.api("POST", "/api/runs", { workflowId: id })).body.data;
  await until("the run has ended", async () => {
    return (await ada.api("GET", `/api/runs/${runId}`)).body.status === "completed";
  });

  await page.goto(`${harness.url}/workflows/${id}`);
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByRole("dialog").getByLabel("Guests can").selectOption("editor");
  await free(page, "share links");
  await look(page, "free share links");

  await page.goto(`${harness.url}/runs/${runId}`);
  await page
    .getByText(/completed/i)
    .first()
    .waitFor();
  await free(page, "the page of a run");
  await look(page, "free run");
  await narrow(page);
});
