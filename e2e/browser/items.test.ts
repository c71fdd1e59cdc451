import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, type Json, look, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

async function start(person: Person, items: number, command: string): Promise<string> {
  const definition = {
    parameters: { items: { type: "array" } },
    nodes: [
      {
        id: "each",
        name: "Each sample",
        command,
        scatter: { over: "params.items" },
        outputs: { o: { path: "o.txt", optional: true }, p: { path: "p.txt", optional: true } },
      },
      { id: "after", name: "Afterwards", command: "true" },
    ],
    edges: [{ id: "e", source: "each", target: "after" }],
  };
  const made = await person.api("POST", "/api/workflows", { name: "Samples", definition });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  const started = await person.api("POST", "/api/runs", {
    workflowId: made.body.data.id,
    parameters: { items: Array.from({ length: items }, (_, at) => `sample-${at}`) },
  });
  expect(started.status, JSON.stringify(started.body)).toBe(202);
  return started.body.data.runId;
}

const ended = (person: Person, runId: string) =>
  until("the run has ended", async () => {
    const { body } = await person.api("GET", `/api/runs/${runId}`);
    return body.status !== "queued" && body.status !== "running";
  });

test("the items of a scatter are looked at one by one, and the failed ones tried again", async () => {
  const ada = await harness.person("Ada Vale");
  const { page } = ada;
  const runId = await start(
    ada,
    300,
    'case $ITEM in sample-7|sample-211) echo "bad $ITEM"; exit 3;; esac; if [ $ITEM = sample-0 ]; then echo "more of $ITEM" > p.txt; fi; echo "fine $ITEM" | tee o.txt',
  );
  await ended(ada, runId);
  await page.goto(`${harness.url}/runs/${runId}`);
  const step = page.getByRole("region", { name: "Step Each sample" });
  await step.getByText("2 of 300 items failed").waitFor();
  await page.getByRole("region", { name: "Graph of the run" }).getByText("2 of 300 items failed").waitFor();
  const wrong = page.getByRole("region", { name: "What went wrong" });
  await wrong.getByText("bad sample-7", { exact: true }).waitFor();
  await wrong.getByText("bad sample-211", { exact: true }).waitFor();
  await wrong.getByRole("button", { name: "Retry 2 failed (reuses 298)" }).waitFor();
  await wrong.getByText("Reuses 298 items.").waitFor();
  await look(page, "run-failed-items");
  await step.getByRole("button", { name: "View items" }).click();
  const table = page.getByRole("region", { name: "Items of Each sample" });
  const names = () => table.getByRole("button").allTextContents();
  await table.getByRole("button", { name: "sample-7", exact: true }).waitFor();
  expect((await names()).slice(0, 4)).toEqual(["sample-7", "sample-211", "sample-0", "sample-1"]);
  expect((await names()).length).toBeLessThan(100); // what is in view, and some more
  await table.getByText("bad sample-211").waitFor();
  await look(page, "run-items");

  // All of them come by as one scrolls.
  await table.focus();
  await until("the last item is in view", async () => {
    await page.keyboard.press("End");
    return (await names()).includes("sample-299");
  });
  await page.keyboard.press("Home");

  // Each file of an item has a preview.
  await table.getByRole("button", { name: "sample-0", exact: true }).click();
  await page.getByRole("dialog").getByText("Attempt 1: completed, exit status 0").waitFor();
  await page.getByRole("dialog").getByText("fine sample-0").waitFor();
  await page.getByRole("dialog").getByText("p.txt").click();
  await page.getByRole("dialog").getByText("more of sample-0").waitFor();
  await page.keyboard.press("Escape");

  await page.getByLabel("State").selectOption("failed");
  await until("only failed ones", async () => (await names()).length === 2);
  await table.getByRole("button", { name: "sample-211" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Attempt 1: failed, exit status 3").waitFor();
  await dialog.getByText("bad sample-211").waitFor();
  await dialog.getByText("2 of 300 items failed. Runs 2 items, reuses 298").waitFor();
  await look(page, "run-item");
  await dialog.getByRole("button", { name: "View log" }).click();
  await page.getByRole("region", { name: "Log" }).getByText("bad sample-211").waitFor();
  expect(new URL(page.url()).searchParams.get("item")).toBe("211");
  await page.getByLabel("Item, 0 to 299").fill("12");
  await page.getByRole("region", { name: "Log" }).getByText("fine sample-12").waitFor();

  // The failure leads to the log of the item that failed.
  await page.goto(`${harness.url}/runs/${runId}`);
  await page.getByRole("region", { name: "What went wrong" }).getByRole("button", { name: "View in log" }).click();
  await page
    .getByRole("region", { name: "Log" })
    .getByText(/^bad sample-/)
    .waitFor();

  // Trying again is a new run that takes what succeeded as it is.
  await page.goto(`${harness.url}/runs/${runId}?tab=items&node=each`);
  await table.getByRole("button", { name: "sample-7", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Retry 2 failed (reuses 298)" }).click();
  await page.waitForURL((url) => /\/runs\/run_/.test(url.pathname) && !url.pathname.includes(runId));
  const again = page.url().match(/run_\w+/)?.[0];
  await until("the retry has ended", async () => {
    const { body } = await ada.api("GET", `/api/runs/${again}`);
    return body.status === "failed";
  });
  const { body: list } = await ada.api("GET", `/api/runs/${again}/nodes/each/shards?limit=500`);
  expect(list.data.filter((item: Json) => item.cached)).toHaveLength(298);
  calm(page);
});

test("the errors of all failed items are read on request, some at a time", async () => {
  const ada = await harness.person("Ada Marsh");
  const { page } = ada;
  const runId = await start(ada, 60, 'if [ "$ITEM_INDEX" -lt 40 ]; then echo "bad $ITEM"; exit 3; fi');
  await ended(ada, runId);
  const limits: string[] = [];
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname.endsWith("/shards")) limits.push(searchParams.get("limit") ?? "");
  });
  await page.goto(`${harness.url}/runs/${runId}`);
  const wrong = page.getByRole("region", { name: "What went wrong" });
  const items = wrong.getByRole("list", { name: "Failed items" }).getByRole("listitem");
  await wrong.getByText("bad sample-4", { exact: true }).waitFor();
  expect(await items.count()).toBe(5);
  await wrong.getByRole("button", { name: "Show 20 more of 35" }).click();
  await wrong.getByText("bad sample-24", { exact: true }).waitFor();
  expect(await items.count()).toBe(25);
  await look(page, "run-more-failed-items");
  await wrong.getByRole("button", { name: "Show the other 15" }).click();
  await wrong.getByText("bad sample-39", { exact: true }).waitFor();
  expect(await items.count()).toBe(40);
  await wrong.getByRole("button", { name: /^Show/ }).waitFor({ state: "detached" });
  expect(limits).toEqual(["5", "20", "20"]);
  calm(page);
});

const many = process.env.MILLRACE_TEST_ALL ? 10_000 : 2_000;

test(`${many} items are scrolled through, a hundred of them drawn`, async () => {
  const ada = await harness.person("Ada Heath");
  const { page } = ada;
  const runId = await start(ada, many, "sleep 60");
  await until("its items are known", async () => {
    const { body } = await ada.api("GET", `/api/runs/${runId}`);
    return body.nodes[0].shards?.total === many;
  });
  await ada.api("POST", `/api/runs/${runId}/cancel`);
  await ended(ada, runId);
  await page.goto(`${harness.url}/runs/${runId}?tab=items`);
  const table = page.getByRole("region", { name: "Items of Each sample" });
  await table.getByRole("cell", { name: "0", exact: true }).first().waitFor();
  await table.focus();
  await until("the last item is in view", async () => {
    await page.keyboard.press("End");
    expect(await table.getByRole("row").count()).toBeLessThan(100);
    return table.getByRole("cell", { name: String(many - 1), exact: true }).isVisible();
  });
  calm(page);
});

test("a viewer sees the items and the results, and is told who may retry", async () => {
  const owner = await harness.person("Vera North");
  await harness.verify(owner.email);
  const runId = await start(owner, 3, "[ $ITEM != sample-1 ] || exit 4; echo $ITEM > o.txt");
  await ended(owner, runId);
  const sent = await owner.api("POST", `/auth/teams/${owner.team}/invitations`, {
    email: "viv.south@example.org",
    role: "viewer",
  });
  expect(sent.status).toBe(201);
  const viewer = await harness.person("Viv South", await harness.invitation("viv.south@example.org"));
  const { page } = viewer;
  await viewer.api("POST", `/auth/teams/${owner.team}/activate`);
  await page.goto(`${harness.url}/runs/${runId}?tab=items`);
  const wrong = page.getByRole("region", { name: "What went wrong" });
  await wrong.getByRole("link", { name: "View step" }).waitFor();
  // The list of failed items does not repeat what is above it.
  await wrong.getByRole("button", { name: "Item 1: sample-1" }).waitFor();
  expect(await wrong.getByText("exited with status 4").count()).toBe(1);
  await page.getByRole("button", { name: "sample-1", exact: true }).click();
  const retry = page.getByRole("dialog").getByRole("button", { name: "Retry from failure" });
  await retry.waitFor();
  expect(await retry.getAttribute("aria-disabled")).toBe("true");
});
