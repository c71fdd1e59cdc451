import { expect, test } from "vitest";
import { folderFile } from "./dropped.ts";
import { inOrder, type Transport, UploadQueue } from "./queue.ts";

/** A network whose every step the test takes itself. */
class Wire implements Transport<string> {
  signed: string[] = [];
  readonly open = new Map<
    string,
    { progress: (bytes: number) => void; done: () => void; fail: (error: Error) => void; signal: AbortSignal }
  >();
  time = 0;
  now = () => this.time;
  sign = async (_team: string, file: File) => {
    this.signed.push(file.name);
    return { url: `/objects/${file.name}`, key: `key-${file.name}` };
  };
  put: Transport<string>["put"] = (_url, file, progress, signal) =>
    new Promise((done, fail) => this.open.set(file.name, { progress, done, fail, signal }));
  explain = (error: unknown) => ({ message: String(error), retryable: true });

  /** at waits until the file is on its way. */
  async at(name: string) {
    for (let turn = 0; turn < 100; turn++) {
      const found = this.open.get(name);
      if (found) return found;
      await Promise.resolve();
    }
    throw new Error(`${name} was never sent`);
  }
}

const file = (name: string, size = 100) => new File([new Uint8Array(size)], name);

test("three go at once, and an address is signed only when its turn comes", async () => {
  const wire = new Wire();
  const queue = new UploadQueue(wire);
  const [first] = queue.add(
    "team_1",
    ["a", "b", "c", "d"].map((name) => file(name)),
  );
  await wire.at("c");
  expect(wire.signed).toEqual(["a", "b", "c"]);
  (await wire.at("a")).done();
  expect((await first)?.key).toBe("key-a");
  await wire.at("d");
  expect(wire.signed).toEqual(["a", "b", "c", "d"]);
});

test("totals count what is sent, and how fast", async () => {
  const wire = new Wire();
  const queue = new UploadQueue(wire);
  queue.add("team_1", [file("a", 1000), file("b", 1000)]);
  const a = await wire.at("a");
  a.progress(0);
  wire.time = 1000;
  a.progress(500);
  expect(queue.now()).toMatchObject({ going: 2, sent: 500, size: 2000, bytesPerSecond: 500 });
});

test("what is cancelled stops, frees its place, and can be tried again", async () => {
  const wire = new Wire();
  const queue = new UploadQueue(wire, 1);
  const [a] = queue.add("team_1", [file("a"), file("b")]);
  const sent = await wire.at("a");
  queue.cancel(queue.now().uploads[0]?.id ?? 0);
  expect(sent.signal.aborted).toBe(true);
  expect((await a)?.state).toBe("cancelled");
  sent.fail(new Error("aborted"));
  (await wire.at("b")).done();
  wire.open.delete("a");
  queue.retry(queue.now().uploads[0]?.id ?? 0);
  (await wire.at("a")).done();
  await expect.poll(() => queue.now().uploads.map((each) => each.state)).toEqual(["done", "done"]);
});

test("what is tried again while it is being cancelled can be cancelled again", async () => {
  const wire = new Wire();
  const queue = new UploadQueue(wire);
  queue.add("team_1", [file("a")]);
  const { id } = queue.now().uploads[0] ?? { id: 0 };
  const first = await wire.at("a");
  queue.cancel(id);
  wire.open.delete("a");
  queue.retry(id);
  const second = await wire.at("a");
  first.fail(new Error("aborted"));
  for (let turn = 0; turn < 10; turn++) await Promise.resolve(); // the first one ends
  queue.cancel(id);
  expect(second.signal.aborted).toBe(true);
});

test("a failure keeps its words, and the rest goes on", async () => {
  const wire = new Wire();
  const queue = new UploadQueue(wire, 1);
  const ends = queue.add("team_1", [file("a"), file("b")]);
  (await wire.at("a")).fail(new Error("the line broke"));
  (await wire.at("b")).done();
  const [a, b] = await Promise.all(ends);
  expect([a?.state, a?.error, b?.state]).toEqual(["failed", "Error: the line broke", "done"]);
  queue.clear();
  expect(queue.now().uploads).toEqual([]);
});

test("what failed and what is under way comes before what has arrived", async () => {
  const wire = new Wire();
  const queue = new UploadQueue(wire);
  queue.add(
    "team_1",
    ["a", "b", "c", "d"].map((name) => file(name)),
  );
  (await wire.at("a")).done();
  (await wire.at("c")).fail(new Error("lost"));
  await wire.at("d");
  const names = inOrder(queue.now().uploads).map((upload) => `${upload.file.name} ${upload.state}`);
  expect(names).toEqual(["c failed", "b sending", "d sending", "a done"]);
});

test("a folder goes in parts, however small it is", async () => {
  const wire = new Wire();
  const large: string[] = [];
  const queue = new UploadQueue({
    ...wire,
    large: async (_team, { name }) => {
      large.push(name);
      return `folder-${name}`;
    },
  });
  const [end] = queue.add("team_1", [folderFile("reads", [{ path: "a", file: file("a", 3) }])]);
  expect([(await end)?.key, large, wire.signed]).toEqual(["folder-reads", ["reads"], []]);
});
