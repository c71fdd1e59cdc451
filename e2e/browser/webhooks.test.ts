import { createServer, type Server } from "node:http";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible, calm, Harness, until } from "./harness.ts";

interface Message {
  id: string;
  type: string;
  run: string;
  timestamp: string;
}

/** Receiver takes messages as a stranger would: whatever the library of the standard does not verify is refused. */
class Receiver {
  readonly taken: Message[] = [];
  readonly refused: string[] = [];
  private secret = "";
  private fails = 0;
  private server: Server;

  constructor() {
    this.server = createServer(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      if (this.fails > 0) {
        this.fails--;
        response.writeHead(500).end("not now");
        return;
      }
      try {
        const headers = request.headers as Record<string, string>;
        const message = new Webhook(this.secret).verify(Buffer.concat(parts).toString("utf8"), headers) as {
          type: string;
          timestamp: string;
          data: { runId: string };
        };
        this.taken.push({
          id: headers["webhook-id"] ?? "",
          type: message.type,
          run: message.data.runId,
          timestamp: message.timestamp,
        });
        response.writeHead(200).end("thanks");
      } catch (error) {
        this.refused.push(String(error));
        response.writeHead(400).end();
      }
    });
  }

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.server.address() as { port: number }).port}/hook`;
  }

  knows(secret: string): void {
    this.secret = secret;
  }

  failsNext(times: number): void {
    this.fails = times;
  }

  close(): Promise<unknown> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(resolve));
  }
}

let harness: Harness;
const receiver = new Receiver();
beforeAll(async () => {
  harness = await Harness.open("--sandbox", "none", "--fetch-allow-private");
});
afterAll(async () => {
  await harness?.close();
  await receiver.close();
});

test("every message is verified by the library of the standard, comes in order, and is sent again on demand", async () => {
  const { page, api } = await harness.person("Wanda Hook");
  const address = await receiver.open();
  const made = await api("POST", "/api/webhooks", { url: address });
  expect(made.status).toBe(201);
  receiver.knows(made.body.data.secret);

  receiver.failsNext(1); // which is tried again, and holds back what follows it in its run
  const workflow = await api("POST", "/api/workflows", {
    name: "Told",
    definition: { nodes: [{ id: "step", command: "true" }] },
  });
  const runs: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { body } = await api("POST", "/api/runs", { workflowId: workflow.body.data.id });
    runs.push(body.data.runId);
  }
  const types = ["run.queued", "run.started", "run.completed"];
  await until("all were told of", async () => receiver.taken.length >= runs.length * types.length);
  expect(receiver.refused).toEqual([]);
  for (const run of runs) expect(receiver.taken.filter((m) => m.run === run).map((m) => m.type)).toEqual(types);
  expect(new Set(receiver.taken.map((m) => m.id)).size).toBe(receiver.taken.length);

  await page.goto(`${harness.url}/team/webhooks`);
  await page.getByRole("button", { name: "Deliveries" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("2 attempts").waitFor();
  await accessible(page, "deliveries");
  const before = receiver.taken.length;
  await dialog.getByRole("button", { name: "Send again" }).first().click();
  await until("it came again", async () => receiver.taken.length > before);
  const again = receiver.taken.at(-1);
  expect(receiver.taken.slice(0, before).map((m) => m.id)).toContain(again?.id);
  expect(receiver.refused).toEqual([]);
  calm(page);
});
