import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness?.close());

const definition = {
  version: 1,
  nodes: [
    {
      id: "draft",
      name: "Draft",
      type: "task",
      command: "echo half done > out.txt; mkdir plots; echo a > plots/a.txt",
      outputs: { o: { path: "out.txt" }, plots: { path: "plots", directory: true } },
      position: { x: 0, y: 0 },
    },
    {
      id: "count",
      name: "Count birds",
      type: "task",
      command: [
        "echo all done > out.txt",
        "printf 'bird,seen\\nheron,12\\n' > birds.csv",
        "echo '<h1>Birds</h1>' > report.html",
        'echo \'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>\' > plot.svg',
      ].join("\n"),
      inputs: { in: {} },
      outputs: {
        o: { path: "out.txt" },
        birds: { path: "birds.csv" },
        report: { path: "report.html" },
        plot: { path: "plot.svg" },
      },
      position: { x: 320, y: 0 },
    },
  ],
  edges: [{ id: "e", source: "draft", sourceHandle: "o", target: "count", targetHandle: "in" }],
};

async function completed(person: Person): Promise<string> {
  const made = await person.api("POST", "/api/workflows", { name: "Birds", definition });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  const started = await person.api("POST", "/api/runs", { workflowId: made.body.data.id });
  expect(started.status, JSON.stringify(started.body)).toBe(202);
  const { runId } = started.body.data;
  await until("the run has completed", async () => {
    const { body } = await person.api("GET", `/api/runs/${runId}`);
    expect(body.status, body.errorMessage).not.toBe("failed");
    return body.status === "completed";
  });
  return runId;
}

test("results are those of the last steps, with their names, also behind a link", async () => {
  const ada = await harness.person("Ada Marsh");
  const { page } = ada;
  const runId = await completed(ada);
  await page.goto(`${harness.url}/runs/${runId}`);
  const results = page.getByRole("region", { name: "Results", exact: true });
  await results.getByText("all done").waitFor();
  await results.getByText("Count birds ·").first().waitFor();
  expect(await results.getByText("Draft").count()).toBe(0);
  await results.getByText("2 more files under Outputs.").waitFor();
  await look(page, "run-results");

  const shared = await ada.api("POST", `/api/runs/${runId}/links`, { expiresInHours: 24 });
  expect(shared.status, JSON.stringify(shared.body)).toBe(201);
  const visitor = await harness.visitor();
  await visitor.page.goto(`${harness.url}/results#${shared.body.data.token}`);
  const seen = visitor.page.getByRole("region", { name: "Results", exact: true });
  await visitor.page.getByText("Shared by Ada Marsh.").waitFor();
  await seen.getByText("all done").waitFor();
  await seen.getByText("Count birds ·").first().waitFor();
  await seen.getByRole("cell", { name: "heron" }).waitFor();
  await seen.getByRole("link", { name: "Open report" }).waitFor();
  await seen.locator("iframe").contentFrame().getByRole("heading", { name: "Birds" }).waitFor();
  const image = seen.getByRole("list", { name: "Images" }).getByRole("img", { name: "plot.svg" });
  await image.scrollIntoViewIfNeeded();
  await until("the image is drawn", () => image.evaluate((each) => (each as HTMLImageElement).naturalWidth > 0));
  const files = visitor.page.getByRole("region", { name: "Outputs" });
  expect(await seen.getByText("Draft").count()).toBe(0);
  expect(await files.getByRole("cell", { name: "Draft · o" }).count()).toBe(1);
  await files.getByRole("button", { name: "Preview out.txt" }).first().click();
  const preview = visitor.page.getByRole("dialog");
  await preview.getByText(/(half|all) done/).waitFor();
  await preview.getByRole("button", { name: "Close" }).click();
  const zip = await files.getByRole("link", { name: "Download plots" }).getAttribute("href");
  const folder = await fetch(zip ?? "");
  expect([folder.status, folder.headers.get("content-type")]).toEqual([200, "application/zip"]);
  await visitor.page.getByRole("img", { name: "The 2 steps of Birds" }).waitFor();
  await look(visitor.page, "shared-results-files");
  calm(page);
  calm(visitor.page);
});
