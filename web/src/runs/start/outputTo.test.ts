import { expect, test } from "vitest";
import { firstTarget, sameTarget, targetProblem } from "./outputTo.ts";

const lab = { bucket: "lab", prefix: "results/" };

test("a target begins as a folder of the run's own", () => {
  expect(firstTarget(lab)).toBe("s3://lab/results/{runId}/");
  expect(firstTarget({ bucket: "lab", prefix: null })).toBe("s3://lab/{runId}/");
  expect(targetProblem(firstTarget(lab), lab)).toBeNull();
});

test("a target lies where its connection leads, and is a folder", () => {
  expect(targetProblem("s3://lab/other/", lab)).toContain("s3://lab/results/");
  expect(targetProblem("s3://elsewhere/results/", lab)).toContain("only reaches");
  expect(targetProblem("s3://lab/results/a", lab)).toContain("slash");
});

test("another run does not write into the first one's folder", () => {
  const outputTo = { url: "s3://lab/results/run_1/", connection: "conn_1" } as NonNullable<
    Parameters<typeof sameTarget>[0]["outputTo"]
  >;
  expect(sameTarget({ id: "run_1", outputTo })).toEqual({ url: "s3://lab/results/{runId}/", connection: "conn_1" });
  expect(sameTarget({ id: "run_1" })).toBeUndefined();
});
