import { expect, test } from "vitest";
import { firstSize, fits, ofExecutors, overText, type Size, sizes } from "./sizes.ts";

const named = (key: string) => sizes.find((size) => size.key === key) as Size;
const machine = (vcpu: number, ramGb: number, gpu = 0) => ({ vcpu, ramGb, gpu });
const server = (...capacities: ReturnType<typeof machine>[]) => ({ capacities, gpu: false });

test("a size fits if one executor has its CPU and memory", () => {
  expect(fits(named("standard"), server(machine(2, 8)))).toBe(true);
  expect(fits(named("large"), server(machine(2, 64)))).toBe(false);
  expect(fits(named("large"), server(machine(2, 64), machine(64, 256)))).toBe(true);
  expect(fits(named("huge"), server())).toBe(true);
  expect(fits(named("gpu"), { capacities: [], gpu: true })).toBe(true);
  expect(fits(named("gpu"), server(machine(64, 256)))).toBe(false);
});

test("of a chosen executor only its own capacity counts", () => {
  const executors = [
    { name: "here", capacity: machine(2, 8) },
    { name: "cluster", capacity: machine(512, 4096, 8) },
    { name: "away", capacity: machine(0, 0) },
  ];
  expect(fits(named("huge"), ofExecutors(executors, true))).toBe(true);
  expect(fits(named("gpu"), ofExecutors(executors, false))).toBe(false);
  const here = ofExecutors(executors, true, "here");
  expect(fits(named("huge"), here)).toBe(false);
  expect(fits(named("gpu"), here)).toBe(false);
  expect(overText(named("huge"), here)).toBe(
    "here has 2 vCPU and 8 GB. The run gets the whole machine, and is billed for 16 vCPU and 64 GB.",
  );
  const cluster = ofExecutors(executors, true, "cluster");
  expect(fits(named("huge"), cluster)).toBe(true);
  expect(fits(named("gpu"), cluster)).toBe(true);
  expect(fits(named("huge"), ofExecutors(executors, true, "away"))).toBe(true); // nothing is known of it
});

test("a form begins with a size that fits", () => {
  expect(firstSize(server(machine(4, 16))).key).toBe("standard");
  expect(firstSize(server(machine(2, 7))).key).toBe("small");
  expect(firstSize(server(machine(1, 2))).key).toBe("standard"); // none fits
});

test("a size above the machine says what the run gets and what is billed", () => {
  expect(overText(named("huge"), server(machine(2, 8)))).toBe(
    "This server has 2 vCPU and 8 GB. The run gets the whole machine, and is billed for 16 vCPU and 64 GB.",
  );
  expect(overText(named("small"), server(machine(2, 8)))).toBeNull();
});
