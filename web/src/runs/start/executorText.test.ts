import { expect, test } from "vitest";
import { executorText } from "./executorText.ts";

const one = {
  name: "slurm-cpu",
  kind: "slurm",
  capacity: { vcpu: 64, ramGb: 256, gpu: 0 },
  free: { vcpu: 12, ramGb: 40, gpu: 0 },
  queued: 0,
  typicalWaitMs: null,
  priceFactor: 1,
  images: true,
  problem: null,
};
const time = (ms: number) => `${ms / 1000} s`;

test("an executor says what is free, how long it takes and what it costs", () => {
  expect(executorText(one, time)).toBe("slurm-cpu: 12 of 64 vCPU free");
  expect(executorText({ ...one, typicalWaitMs: 90_000, priceFactor: 1.5 }, time)).toBe(
    "slurm-cpu: 12 of 64 vCPU free, usually starts within 90 s, 1.5 × the price",
  );
  expect(executorText({ ...one, problem: "Slurm does not answer" }, time)).toBe("slurm-cpu: not available");
});
