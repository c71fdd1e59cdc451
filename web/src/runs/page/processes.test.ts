import { expect, test } from "vitest";
import { flowOf } from "../../graph/flow.ts";
import type { Definition } from "../../workflows/queries.ts";
import type { RunNode } from "../queries.ts";
import { isReported } from "../queries.ts";
import { failedProcesses, shapeOf, withProcesses } from "./processes.ts";

const process = (id: string, follows: string[] = [], status = "running") =>
  ({ id, name: id.slice(2), status, launchedBy: "p", follows }) as unknown as RunNode;
const step = { id: "p", name: "Nextflow", status: "failed" } as unknown as RunNode;

test("processes stand behind the step that launches them, in their order", () => {
  const definition = { version: 1, nodes: [{ id: "p", command: "x", position: { x: 5, y: 5 } }] } as Definition;
  const nodes = [step, process("p.TRIM"), process("p.COUNT", ["p.TRIM"], "failed")];
  const whole = withProcesses(definition, shapeOf(nodes));
  expect(whole.nodes?.map((node) => node.id)).toEqual(["p", "p.TRIM", "p.COUNT"]);
  expect(whole.edges?.map((edge) => [edge.source, edge.target])).toEqual([
    ["p", "p.TRIM"],
    ["p.TRIM", "p.COUNT"],
  ]);
  const places = flowOf(whole).nodes.map((node) => `${node.position.x},${node.position.y}`);
  expect(new Set(places).size).toBe(3);
  expect(failedProcesses(nodes).map((node) => node.id)).toEqual(["p.COUNT"]);
});

test("a run without a pipeline is drawn as it is defined", () => {
  const definition = { version: 1, nodes: [{ id: "p", command: "x" }] } as Definition;
  expect(shapeOf([step])).toBe("");
  expect(withProcesses(definition, "")).toBe(definition);
});

test("a run whose step launches a pipeline is ours", () => {
  expect(isReported({ kind: "reported" })).toBe(true);
  expect(isReported({ kind: null })).toBe(false);
});
