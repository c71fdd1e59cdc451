import { afterEach, expect, test, vi } from "vitest";
import { newApi } from "../../api/client.ts";
import { LogSource } from "./logSource.ts";

afterEach(() => vi.unstubAllGlobals());

/** serve answers requests for a log whose bytes from head up to tail are missing, as the server does. */
function serve(log: { text: string; head?: number; tail?: number }, before: () => Promise<void> = async () => {}) {
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => setTimeout(draw, 0));
  vi.stubGlobal("fetch", async (request: Request) => {
    const query = new URL(request.url).searchParams;
    const [offset, limit] = [Number(query.get("offset")), Number(query.get("limit"))];
    const { text, head = Number.POSITIVE_INFINITY, tail = 0 } = log;
    const size = text.length;
    const end = Math.min(offset + limit, offset < head ? head : size);
    const data =
      offset < tail && end >= head
        ? { text: `${text.slice(offset, head)}[gap]\n`, nextOffset: tail, missing: tail - head, size }
        : { text: text.slice(offset, end), nextOffset: Math.min(end, size), size };
    await before();
    return Response.json({ success: true, data });
  });
}

const loaded = (source: LogSource) => expect.poll(() => source.now().loading).toBe(false);

test("text that the stream delivers during a read is added once", async () => {
  const log = { text: "one\n" };
  let during = async () => {};
  serve(log, () => during());
  const source = new LogSource(newApi("team_1"), "run_1", null);
  await loaded(source);
  log.text += "two\n";
  during = async () => {
    during = async () => {};
    source.receive("two\n", 4);
  };
  await source.more();
  expect(source.buffer.lines).toEqual(["one", "two"]);
  source.destroy();
});

test("a log with a gap is read from its end to its beginning, with one mark", async () => {
  const line = `${"x".repeat(99)}\n`;
  const mega = 1_000_000;
  const text = line.repeat(15 * 10_000);
  serve({ text, head: 4 * mega, tail: 13 * mega });
  const source = new LogSource(newApi("team_1"), "run_1", null);
  await loaded(source);
  expect(source.buffer.start).toBe(13 * mega + 100);
  await source.earlier();
  expect(source.buffer.start).toBe(4 * mega - (1 << 20)); // a page before the gap
  expect(source.buffer.lines.filter((each) => each === "[gap]")).toHaveLength(1);
  await source.whole();
  expect(source.buffer.complete).toBe(true);
  expect(source.buffer.lines.filter((each) => each === "[gap]")).toHaveLength(1);
  expect(source.buffer.lines).toHaveLength(40_000 + 1 + 20_000);
  expect(source.buffer.offsets.at(-1)).toBe(text.length - 100);
  source.destroy();
});

test("a line of a log that no tab can hold is counted from its beginning, and what follows is read on request", async () => {
  const line = (number: number) => `${String(number).padStart(99, "0")}\n`;
  const log = { text: Array.from({ length: 720_000 }, (_, at) => line(at + 1)).join("") };
  serve(log);
  const source = new LogSource(newApi("team_1"), "run_1", null);
  await loaded(source);
  expect(source.indexOf({ line: 20_000 })).toBeNull(); // nobody knows the number of a loaded line
  await source.upTo(20_000);
  expect(source.buffer.lines[source.indexOf({ line: 20_000 }) ?? -1]).toBe(line(20_000).trimEnd());
  const end = source.buffer.end;
  expect(end).toBeLessThan(4 << 20);
  expect(source.later).toBe(log.text.length - end);
  source.receive("streamed\n", log.text.length);
  await source.after();
  expect(source.buffer.end).toBe(end + (1 << 20));
  expect(source.buffer.lines).not.toContain("streamed");
  expect(source.indexOf({ byte: log.text.length - 100 })).toBeNull();
  await source.latest();
  expect(source.later).toBe(0);
  expect(source.buffer.lines.at(-1)).toBe(line(720_000).trimEnd());
  await source.upTo(700_000);
  expect(source.now().error).toContain("Line 700,000");
  expect(source.indexOf({ line: 700_000 })).toBeNull();
  source.destroy();
});

test("a line that a short log does not have is marked nowhere", async () => {
  serve({ text: "one\ntwo\n" });
  const source = new LogSource(newApi("team_1"), "run_1", null);
  await loaded(source);
  expect([1, 2, 3].map((line) => source.indexOf({ line }))).toEqual([0, 1, null]);
  source.destroy();
});

test("a streamed text that ends with the mark of a gap is followed by what comes behind the gap", async () => {
  const log = { text: "one\n" };
  serve(log);
  const source = new LogSource(newApi("team_1"), "run_1", null);
  await loaded(source);
  source.receive("two\n[gap]\n", 4, 1000);
  source.receive("three\n", 1000, 1006);
  expect(source.buffer.lines).toEqual(["one", "two", "[gap]", "three"]);
  expect(source.buffer.end).toBe(1006);
  source.destroy();
});
