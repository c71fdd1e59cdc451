// The story of scripts/demo, told to its end; the frames of the animation of the README: make picture.
import { readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, until } from "./harness.ts";

const root = new URL("../../", import.meta.url).pathname;
const pictures = process.env.MILLRACE_TEST_PICTURES;

let harness: Harness;
let story: string;
let password: string;
let failed: string;
beforeAll(async () => {
  ({ harness, story } = await Harness.demo());
  password = /^ +password +(\S+)$/m.exec(story)?.[1] ?? "";
  failed = /\/runs\/(run_\w+)$/m.exec(story)?.[1] ?? "";
});
afterAll(() => harness?.close());

const line = (text: string) => new RegExp(`^ +(\\S*${text}.*)$`, "m").exec(story)?.[1] ?? "";

let frames = 0;
async function frame(page: Page): Promise<void> {
  frames++;
  if (pictures) await page.screenshot({ path: join(pictures, `demo-${frames}.png`), animations: "disabled" });
}

test("one sample of 200 fails, and its repair runs only what is needed", async () => {
  const { page } = await harness.visitor();
  await page.setViewportSize({ width: 1200, height: 750 });
  await page.goto(`${harness.url}/runs/${failed}`);
  await page.getByLabel("Email").fill("ada@example.org");
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const wrong = page.getByRole("region", { name: "What went wrong" });
  await wrong.getByText('site-117.csv, line 5: "2,75" is not a number of hours').first().waitFor();
  await wrong.getByRole("button", { name: "Retry 1 failed (reuses 199)" }).waitFor();
  await page.locator(".react-flow__node", { hasText: "Count one site" }).waitFor();
  await frame(page);

  await page.goto(line("/workflows/wf_"));
  await page.locator(".cm-content", { hasText: "mkdir tidy" }).click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.insertText(line("sed -i"));
  await page.locator(".cm-content", { hasText: "s/,/./g" }).waitFor();
  await page.getByText("Saved", { exact: true }).waitFor();
  await frame(page);
  await page.getByRole("button", { name: "Run from here" }).click();
  const plan = page.getByRole("dialog").getByRole("region", { name: "What will be reused" });
  await plan.getByText("Count one site: 1 of 200 items failed. The others are reused").waitFor();
  await frame(page);
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();

  await page.waitForURL(/\/runs\/run_/);
  await page.getByRole("heading", { level: 1 }).getByText("Completed").waitFor();
  const results = page.getByRole("region", { name: "Results", exact: true });
  await results.locator("iframe").contentFrame().getByRole("heading", { name: "Birds at 200 sites" }).waitFor();
  await page.locator(".react-flow__node", { hasText: "Count one site" }).click();
  await page.getByRole("button", { name: "View items" }).click();
  const items = page.getByRole("region", { name: "Items of Count one site" });
  await items.getByRole("row", { name: /site-001.csv.*reused/ }).waitFor();
  const counted = items.getByRole("row", { name: /site-117.csv/ });
  await until("the sheet that was counted again is in view", async () => {
    await items.evaluate((table) => {
      table.scrollTop = 112 * 45; // the height of a row; more rows come as one scrolls
    });
    return (await counted.count()) === 1;
  });
  expect(await counted.textContent()).not.toContain("reused");
  await items.scrollIntoViewIfNeeded();
  await frame(page);
  await page.getByRole("button", { name: "Share results…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Create link" }).click();
  const link = (await page.getByRole("dialog").locator("code").first().textContent()) ?? "";
  await page.keyboard.press("Escape");

  const visitor = await harness.visitor();
  await visitor.page.setViewportSize({ width: 1200, height: 750 });
  await visitor.page.goto(link);
  const shared = visitor.page.getByRole("region", { name: "Results", exact: true });
  await shared.locator("iframe").contentFrame().getByRole("heading", { name: "Birds at 200 sites" }).waitFor();
  await frame(visitor.page);

  await page.goto(line("/billing"));
  const cost = page.getByRole("region", { name: "Costs by workflow" }).getByRole("row", { name: /^Bird counts/ });
  await cost.scrollIntoViewIfNeeded();
  expect(await cost.textContent()).toMatch(/20[.,]\d/); // two runs, and less than one credit
  await frame(page);
  calm(page);
  calm(visitor.page);
});

test("the command line tells the same story", async () => {
  const page = readFileSync(join(root, "docs/demo.md"), "utf8");
  const [commands] = [...page.matchAll(/```sh\n(run=.*?)```/gs)].map(([, text]) => text);
  symlinkSync(join(root, "examples"), join(harness.data, "examples"));
  const { stdout } = await harness.shell(
    `cd "$HOME"; echo '${password}' | millrace login --email ada@example.org\n${commands?.replace("run_…", failed)}`,
    {},
  );
  expect(stdout).toContain('site-117.csv, line 5: "2,75" is not a number of hours');
  expect(stdout).toMatch(/^199$/m);
  expect(stdout).toContain("/results#mrr_");
  expect(stdout).toMatch(/Bird counts +3 +0\.\d+/);
  expect(readFileSync(join(harness.data, "results/report.html"), "utf8")).toContain("Birds at 200 sites");
});

test("nothing is left of it when it ends", async () => {
  await harness.stop();
  expect(readdirSync(harness.data).filter((name) => name.startsWith("millrace-demo."))).toEqual([]);
});
