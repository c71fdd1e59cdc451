import { expect, test } from "vitest";
import type { Definition } from "../../workflows/queries.ts";
import { fieldsOf, fill, readField, startText } from "./form.ts";
import { sizeOf } from "./sizes.ts";

const definition = {
  version: 1,
  parameters: {
    count: { type: "integer", minimum: 1, maximum: 9, title: "How many", description: "Not too many" },
    rate: { type: "number", default: 0.5 },
    mode: { type: "string", enum: ["fast", "slow"], default: "fast" },
    level: { enum: [1, 2], default: 2 },
    name: { type: ["string", "null"], pattern: "^[a-z]+$", default: "x" },
    list: { type: "array", default: [1, 2] },
    flag: { type: "boolean", default: true },
  },
  inputs: { reads: { type: "files", required: true }, one: { type: "file", required: false } },
} as unknown as Definition;

const field = (name: string) => {
  const found = fieldsOf(definition).find((each) => each.name === name);
  if (!found) throw new Error(name);
  return found;
};

test("each schema gets its control", () => {
  expect(Object.fromEntries(fieldsOf(definition).map((each) => [each.name, each.kind]))).toEqual({
    count: "integer",
    rate: "number",
    mode: "choice",
    level: "choice",
    name: "text",
    list: "json",
    flag: "flag",
  });
  expect(field("count")).toMatchObject({
    label: "How many",
    required: true,
    hint: "Not too many · at least 1, at most 9",
  });
});

test("what is typed is read as its type, or refused in words", () => {
  expect(readField(field("count"), "7")).toEqual({ value: 7 });
  expect(readField(field("count"), "12")).toEqual({ error: "At most 9." });
  expect(readField(field("count"), "1.5")).toEqual({ error: "Must be a whole number." });
  expect(readField(field("count"), "")).toEqual({ error: "Required." });
  expect(readField(field("rate"), "")).toEqual({ value: undefined });
  expect(readField(field("level"), "1")).toEqual({ value: 1 });
  expect(readField(field("name"), "A")).toEqual({ error: "Must match ^[a-z]+$." });
  expect(readField(field("list"), "[3]")).toEqual({ value: [3] });
  expect(readField(field("list"), "[")).toHaveProperty("error");
  expect(readField(field("flag"), "false")).toEqual({ value: false });
});

test("a form begins with what was given, or the defaults", () => {
  expect(startText(field("list"), undefined)).toBe("[1,2]");
  expect(startText(field("rate"), 0.25)).toBe("0.25");
  expect(startText(field("count"), undefined)).toBe("");
});

test("a whole form gives a run's body, and all errors at once", () => {
  const texts = Object.fromEntries(fieldsOf(definition).map((each) => [each.name, startText(each, undefined)]));
  expect(Object.keys(fill(definition, texts, {}).errors)).toEqual(["count", "inputs.reads"]);
  const filled = fill(definition, { ...texts, count: "3" }, { reads: ["a", "b"], one: ["c"] });
  expect(filled.errors).toEqual({});
  expect(filled.parameters).toMatchObject({ count: 3, mode: "fast", level: 2, list: [1, 2], flag: true });
  expect(filled.inputs).toEqual({ reads: ["a", "b"], one: "c" });
});

test("an earlier run's size is found again", () => {
  expect(sizeOf({ vcpu: 4, ramGb: 16, gpu: 0 }).key).toBe("large");
  expect(sizeOf({ vcpu: 4, ramGb: 16, gpu: 1 }).key).toBe("gpu");
  expect(sizeOf({ vcpu: 3, ramGb: 5, gpu: 0 })).toMatchObject({ key: "custom", compute: { vcpu: 3, ramGb: 5 } });
});

test("what a pipeline leaves open is empty, and left to it", () => {
  const open = {
    version: 1,
    parameters: {
      genome: { type: ["string", "null"], default: null },
      tool: { type: ["string", "null"], enum: ["star", null], default: null },
      cores: { type: ["integer", "null"], default: null, "x-hidden": true },
    },
  } as unknown as Definition;
  const fields = fieldsOf(open);
  expect(fields.map((field) => [field.name, startText(field, undefined), field.hidden])).toEqual([
    ["genome", "", false],
    ["tool", "", false],
    ["cores", "", true],
  ]);
  expect(fill(open, { genome: "", tool: "", cores: "" }, {})).toEqual({ parameters: {}, inputs: {}, errors: {} });
  expect(fill(open, { genome: "hg38", tool: "star", cores: "2" }, {}).parameters).toEqual({
    genome: "hg38",
    tool: "star",
    cores: 2,
  });
});
