// A machine that one run fills: the others say why they wait.
import { afterAll, beforeAll, expect, test } from "vitest";
import { calm, Harness, look, type Person } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open("--capacity", "vcpu=2,ramGb=8");
});
afterAll(() => harness?.close());

async function start(person: Person, name: string, command: string): Promise<string> {
  const definition = { nodes: [{ id: "a", name: "Only", command }] };
  const made = await person.api("POST", "/api/workflows", { name, definition });
  expect(made.status).toBe(201);
  const started = await person.api("POST", "/api/runs", { workflowId: made.body.data.id });
  expect(started.status).toBe(202);
  return started.body.data.runId;
}

test("a queued run says why it waits, and runs when there is room", async () => {
  const ada = await harness.person("Ada Weir");
  const { page } = ada;
  const first = await start(ada, "Long", "sleep 600");
  const second = await start(ada, "Short", "sleep 600");
  const third = await start(ada, "Last", "true");

  await page.goto(`${harness.url}/runs`);
  const row = (name: string) =>
    page.getByRole("row").filter({ has: page.getByRole("link", { name: new RegExp(`^${name}\\b`) }) });
  await row("Short").getByText("Waiting: It starts when 2 vCPUs and 8 GB are free.").waitFor();
  await row("Last").getByText("Waiting: 1 run is before it.").waitFor();
  await look(page, "runs-waiting");

  await page.goto(`${harness.url}/runs/${third}`);
  await page.getByText("Waiting: 1 run is before it.").waitFor();
  await page.locator(".react-flow__node", { hasText: "Only" }).waitFor();
  await look(page, "run-waiting");
  const cancel = async (run: string) => expect((await ada.api("POST", `/api/runs/${run}/cancel`)).status).toBe(200);
  await cancel(first);
  // Now it is the next: told by the stream, the page is not loaded again.
  await page.getByText("Waiting: It starts when 2 vCPUs and 8 GB are free.").waitFor();
  await cancel(second);
  await page.getByRole("heading", { level: 1 }).getByText("Completed").waitFor();
  expect(await page.getByText(/^Waiting:/).count()).toBe(0);
  calm(page);
});
