// Workflows that live in a Git repository.
import { afterAll, beforeAll, expect, test } from "vitest";
import { GitHost } from "./gitHost.ts";
import { calm, Harness, look, until } from "./harness.ts";

let harness: Harness;
let host: GitHost;
beforeAll(async () => {
  host = await GitHost.open();
  harness = await Harness.open("--fetch-allow-private");
});
afterAll(async () => {
  await harness?.close();
  host?.close();
});

const file = (step: string) => `name: Count lines
definition:
  nodes:
    - id: count
      name: ${step}
      command: sh "$SOURCE_DIR/count.sh"
`;

test("a workflow follows its repository until it is detached", async () => {
  host.commit({ "README.md": "nothing yet" });
  const ada = await harness.person("Ada Sluice");
  const { page } = ada;
  await page.goto(`${harness.url}/workflows`);
  await page.getByRole("button", { name: "From Git" }).click();
  const dialog = page.getByRole("dialog", { name: "New workflow from Git" });
  await dialog.getByLabel("Repository").fill(host.url);
  await dialog.getByRole("button", { name: "Create and open" }).click();
  await dialog
    .getByText(/there is no millrace.yaml or millrace.json/)
    .first()
    .waitFor();
  await look(page, "git-dialog");

  const first = host.commit({ "millrace.yaml": file("Count"), "count.sh": "echo 1" });
  await dialog.getByRole("button", { name: "Create and open" }).click();
  const badge = page.getByRole("region", { name: "Git" });
  await badge.getByText("Follows Git").waitFor();
  await badge.getByText(first.slice(0, 7)).waitFor();
  const add = (disabled: boolean) => page.getByRole("button", { name: "Add a step", disabled });
  await add(true).waitFor();
  await page.locator(".react-flow__node").getByText("Count").first().waitFor();
  await look(page, "git-editor");

  // What is pushed comes with a click, and everybody sees it.
  const second = host.commit({ "millrace.yaml": file("Count again") });
  await badge.getByRole("button", { name: "Refresh" }).click();
  await badge.getByText(second.slice(0, 7)).waitFor();
  await page.locator(".react-flow__node").getByText("Count again").first().waitFor();

  host.commit({ "millrace.yaml": "nodes: 7" });
  await badge.getByRole("button", { name: "Refresh" }).click();
  await badge.getByText("The last refresh failed").waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await badge.getByRole("button", { name: "Detach" }).waitFor();
  // The page is laid out anew after its width has changed.
  await page.waitForFunction(() => document.documentElement.scrollWidth <= 390);
  await look(page, "git-editor-narrow");
  await page.setViewportSize({ width: 1280, height: 800 });

  await badge.getByRole("button", { name: "Detach" }).click();
  await page.getByRole("dialog", { name: "Detach from Git?" }).getByRole("button", { name: "Detach" }).click();
  await badge.waitFor({ state: "detached" });
  await add(false).waitFor();
  // Where its code is can be changed here now.
  await page.getByRole("tab", { name: "Workflow" }).click();
  const branch = page.getByLabel("Branch, tag or commit");
  expect(await branch.inputValue()).toBe(second);
  await branch.fill("not a name");
  await branch.blur();
  await page.getByText("Enter the name of a branch, a tag or a commit.").waitFor();
  await branch.fill("main");
  await branch.blur();
  const id = page.url().split("/workflows/")[1]?.split("?")[0];
  const now = await until("the branch", async () => {
    const { body } = await ada.api("GET", `/api/workflows/${id}`);
    return body.data.definition.source.ref === "main" && body.data;
  });
  expect(now.git).toBeUndefined();
  calm(page);
});
