import { expect, test } from "vitest";
import { parse } from "yaml";
import type { Definition } from "../definition/model.ts";
import { read, write, writeFile } from "./source.ts";

const definition = {
  version: 1,
  nodes: [
    { type: "task", position: { x: 320, y: 0 }, cache: true, outputs: {}, command: "b", name: "Second", id: "b" },
    { type: "task", position: { x: 0, y: 90 }, command: "below", id: "c" },
    { command: "a", id: "a" },
  ],
} as unknown as Definition;

test("steps are written from left to right, with their names first", () => {
  const { nodes = [] } = read(write(definition, "yaml"));
  expect(nodes.map(({ id }) => id)).toEqual(["a", "c", "b"]);
  expect(Object.keys(nodes[2] ?? {})).toEqual(["id", "name", "type", "command", "outputs", "cache", "position"]);
  expect(JSON.parse(write(definition, "json"))).toEqual({ ...definition, nodes });
});

test("a file says what the workflow is called and under which license, in both formats", () => {
  const { nodes = [] } = read(write(definition, "yaml"));
  const whole = { name: "A", license: "MIT", definition: { ...definition, nodes } };
  expect(JSON.parse(writeFile({ name: "A", license: "MIT" }, definition, "json"))).toEqual(whole);
  expect(parse(writeFile({ name: "A", license: "MIT" }, definition, "yaml"))).toEqual(whole);
  expect(read(writeFile({ name: "A" }, definition, "yaml")).nodes).toEqual(nodes);
});
