import { expect, test } from "vitest";
import { type LargeTransport, sendLarge } from "./large.ts";

/** A server that keeps parts, and a line that breaks when the test says so. */
class Server implements LargeTransport {
  readonly parts = new Map<number, string>();
  readonly kept = new Map<string, string>();
  begun = 0;
  puts: number[] = [];
  completed = false;
  aborted: string[] = [];
  sum = "sum of 0123456789";
  breaks = 0;
  final = false; // whether what breaks stays broken
  private readonly upload = { uploadId: "up_1", key: "teams/t/k", partSize: 4, partCount: 3 };
  begin = async () => {
    this.begun++;
    return this.upload;
  };
  state = async (id: string) =>
    id === "up_1"
      ? { ...this.upload, size: 10, parts: [...this.parts].map(([number, text]) => ({ number, size: text.length })) }
      : null;
  sign = async (_id: string, number: number) => String(number);
  put: LargeTransport["put"] = async (url, part, onSent) => {
    const text = await part.text();
    if (this.breaks-- > 0) {
      onSent(1);
      throw new Error("the line broke");
    }
    this.puts.push(Number(url));
    this.parts.set(Number(url), text);
    onSent(part.size);
  };
  hash = async (file: File) => `sum of ${await file.text()}`;
  complete = async (_id: string, sum: string) => {
    if (sum !== this.sum) throw new Error("arrived damaged");
    this.completed = true;
  };
  abort = async (id: string) => {
    this.aborted.push(id);
    this.parts.clear();
  };
  retryable = () => !this.final;
  wait = async () => {};
  team = "team_1";
  notes = {
    getItem: (name: string) => this.kept.get(name) ?? null,
    setItem: (name: string, value: string) => void this.kept.set(name, value),
    removeItem: (name: string) => void this.kept.delete(name),
  };
}

const file = new File(["0123456789"], "reads.fq", { lastModified: 7 });
const going = () => new AbortController().signal;

test("all parts arrive, and the note of them goes", async () => {
  const server = new Server();
  const sent: number[] = [];
  expect(await sendLarge(file, server, (bytes) => sent.push(bytes), going())).toBe("teams/t/k");
  expect([...server.parts].sort(([a], [b]) => a - b).map(([, text]) => text)).toEqual(["0123", "4567", "89"]);
  expect(sent.at(-1)).toBe(10);
  expect(server.completed).toBe(true);
  expect(server.kept.size).toBe(0);
});

test("a line that breaks is tried again", async () => {
  const server = new Server();
  server.breaks = 4;
  await sendLarge(file, server, () => {}, going());
  expect(server.parts.size).toBe(3);
});

test("what has arrived before is not sent again", async () => {
  const server = new Server();
  server.breaks = 1;
  server.final = true;
  await expect(sendLarge(file, server, () => {}, going())).rejects.toThrow("the line broke");
  const before = [...server.parts.keys()];
  server.puts = [];
  await sendLarge(file, server, () => {}, going());
  expect(server.begun).toBe(1);
  expect(server.puts.filter((number) => before.includes(number))).toEqual([]);
  expect(server.parts.size).toBe(3);
});

test("nobody hashes a file any more that cannot be sent", async () => {
  const server = new Server();
  server.breaks = 3;
  server.final = true;
  let ended = false;
  const hash: LargeTransport["hash"] = (_file, signal) =>
    new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        ended = true;
        reject(new Error("ended"));
      }),
    );
  await expect(sendLarge(file, { ...server, hash }, () => {}, going())).rejects.toThrow("the line broke");
  expect(ended).toBe(true);
});

test("an upload that is gone is begun anew", async () => {
  const server = new Server();
  server.kept.set("upload:team_1:reads.fq:10:7", "up_gone");
  await sendLarge(file, server, () => {}, going());
  expect(server.begun).toBe(1);
});

test("what arrived as something else is no file", async () => {
  const server = new Server();
  server.final = true;
  server.sum = "sum of what arrived";
  await expect(sendLarge(file, server, () => {}, going())).rejects.toThrow("damaged");
  expect(server.completed).toBe(false);
});

test.each([true, false])("who cancels gets no file, and leaves no upload (before it begins: %s)", async (before) => {
  const server = new Server();
  const stop = new AbortController();
  if (before) stop.abort();
  const sending = sendLarge(file, server, () => stop.abort(), stop.signal);
  await expect(sending).rejects.toThrow("cancelled");
  expect([server.completed, server.aborted, server.kept.size]).toEqual([false, ["up_1"], 0]);
});

test("who loses the connection keeps what has arrived", async () => {
  const server = new Server();
  server.breaks = 3;
  server.final = true;
  await expect(sendLarge(file, server, () => {}, going())).rejects.toThrow("the line broke");
  expect([server.aborted, server.kept.size]).toEqual([[], 1]);
});

test("a server that cannot be reached does not keep anybody from cancelling", async () => {
  const server = new Server();
  const stop = new AbortController();
  stop.abort();
  const abort = () => Promise.reject(new Error("unreachable"));
  await expect(sendLarge(file, { ...server, abort }, () => {}, stop.signal)).rejects.toThrow("cancelled");
});
