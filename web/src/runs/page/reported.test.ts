import { expect, test } from "vitest";
import { boxOf, type Metric, measured, type Task, taskFacts } from "./reported.ts";

const metric = (of: string, ...[min, q1, median, q3, max]: number[]): Metric =>
  ({ node: "ALIGN", of, min, q1, median, q3, max, mean: 0 }) as Metric;

test("only what was said of a task is listed", () => {
  const nothing = Object.fromEntries(
    ["workDir", "container", "host", "queue", "nativeId", "cpus", "cpuPercent", "cpuSeconds", "memoryBytes"]
      .concat(["peakMemoryBytes", "diskBytes", "timeMs", "readBytes", "writtenBytes"])
      .map((name) => [name, null]),
  ) as unknown as Task;
  expect(taskFacts(nothing)).toEqual([]);
  expect(
    taskFacts({ ...nothing, workDir: "/w", memoryBytes: 2 ** 30, timeMs: 60_000, cpuPercent: 150.5, readBytes: 0 }),
  ).toEqual([
    ["Work folder", "/w"],
    ["CPU used", "150.5% of one core"],
    ["Memory requested", "1 GB"],
    ["Time requested", "1 min"],
    ["Read", "0 bytes"],
  ]);
});

test("the quartiles of a step lie on one scale", () => {
  expect(boxOf(metric("mem", 10, 20, 30, 40, 50), 100)).toEqual({ min: 10, q1: 20, median: 30, q3: 40, max: 50 });
  expect(boxOf(metric("mem", 0, 0, 0, 0, 0), 0)).toEqual({ min: 0, q1: 0, median: 0, q3: 0, max: 0 });
  expect(boxOf(metric("mem", -5, 0, 0, 0, 900), 100)).toMatchObject({ min: 0, max: 100 });
});

test("measures that are not known are left out", () => {
  expect(measured([metric("time"), metric("mem"), metric("mem"), metric("colour")])).toEqual(["mem", "time"]);
});
