import { expect, test } from "vitest";
import { FrameParser } from "./sse.ts";

const stream =
  'retry: 3000\n\nid: 1:0\ndata: {"type":"connected"}\n\n: heartbeat\n\nid: 5:120\ndata: two\ndata: lines\n\n';
const whole = [
  { id: "1:0", data: '{"type":"connected"}' },
  { id: "5:120", data: "two\nlines" },
];

test("frames come out whole, however they are cut", () => {
  for (let size = 1; size <= stream.length; size++) {
    const parser = new FrameParser();
    const got = [];
    for (let at = 0; at < stream.length; at += size) got.push(...parser.push(stream.slice(at, at + size)));
    expect(got, `in pieces of ${size}`).toEqual(whole);
  }
});

test("line ends of all kinds are taken", () => {
  const parser = new FrameParser();
  expect(
    [...parser.push("data: a\r\n\r\ndata: b\n\n"), ...parser.push("data: c\r"), ...parser.push("\n\r\n")].map(
      (frame) => frame.data,
    ),
  ).toEqual(["a", "b", "c"]);
});
