// Two people on the canvas of an example, which is a picture of the README: make picture.
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, example, Harness } from "./harness.ts";

const pictures = process.env.MILLRACE_TEST_PICTURES;

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

const step = (page: Page, name: string) => page.locator(".react-flow__node", { hasText: name });

test("two people see all steps of an example, and where the other one is", async () => {
  const ada = await harness.person("Ada Okoye");
  await harness.verify(ada.email);
  await ada.api("POST", "/api/team/invite", { email: "bo.lund@example.org", role: "member" });
  const bo = await harness.person("Bo Lund", await harness.invitation("bo.lund@example.org"));
  await bo.api("POST", `/auth/teams/${ada.team}/activate`);
  const workflow = await ada.api("POST", "/api/workflows", example("association-study"));
  for (const { page } of [ada, bo]) {
    await page.setViewportSize({ width: 1200, height: 600 });
    await page.goto(`${harness.url}/workflows/${workflow.body.data.id}`);
    await page.getByText("Saved", { exact: true }).waitFor();
  }
  await bo.page.getByRole("button", { name: "Go to Ada Okoye" }).waitFor();
  await ada.page.getByRole("button", { name: "Go to Bo Lund" }).waitFor();

  const nodes = example("association-study").definition.nodes;
  for (const { name } of nodes) await step(ada.page, name).waitFor();
  await step(ada.page, nodes[1].name).click();
  await step(bo.page, nodes[1].name).getByText("Ada Okoye").waitFor();
  await step(bo.page, nodes[0].name).click();
  await step(ada.page, nodes[0].name).getByText("Bo Lund").waitFor();
  await ada.page.locator(".cm-content").waitFor();
  expect(await ada.page.locator(".react-flow__node").count()).toBe(nodes.length);
  if (pictures) await ada.page.screenshot({ path: join(pictures, "canvas.png"), animations: "disabled" });
  calm(ada.page);
  calm(bo.page);
});
