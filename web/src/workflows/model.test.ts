import { expect, test } from "vitest";
import { first } from "./firstExample.ts";
import { boxes, foldersOf, inFolder, needsFiles, pick, readImport } from "./model.ts";
import type { Definition, WorkflowRow } from "./queries.ts";
import { loadTemplates, readTemplate, sampleNames } from "./templates.ts";

const row = (name: string, updatedAt: string): WorkflowRow => ({
  id: name,
  name,
  description: "",
  revision: 1,
  nodeCount: 0,
  createdBy: { id: "u", name: "Ada" },
  createdAt: updatedAt,
  updatedAt,
  kind: null,
  lastRuns: [],
  tags: [],
  folder: "",
});

test("folders have those around them, and favorites come first", () => {
  const rows = ["RNA/Single cell", "RNAx", "", "RNA/Single cell/Old"].map((folder, at) => ({
    ...row(`w${at}`, `2026-01-0${at + 1}`),
    folder,
  }));
  expect(foldersOf(rows)).toEqual(["RNA", "RNA/Single cell", "RNA/Single cell/Old", "RNAx"]);
  const inside = (folder: string) => rows.filter((each) => inFolder(each.folder, folder)).map((each) => each.name);
  expect(inside("RNA")).toEqual(["w0", "w3"]);
  expect(inside("")).toHaveLength(4);
  expect(pick(rows, "", "updated", new Set(["w1"])).map((each) => each.name)).toEqual(["w1", "w3", "w2", "w0"]);
  expect(pick(rows, "single", "name").map((each) => each.name)).toEqual(["w0", "w3"]);
});

test("every word must be found, in any order", () => {
  const rows = [row("Trim and align", "2026-01-01"), row("Count reads", "2026-01-02"), row("Align", "2026-01-03")];
  expect(pick(rows, "align trim", "name").map((each) => each.name)).toEqual(["Trim and align"]);
  expect(pick(rows, "ada", "updated").map((each) => each.name)).toEqual(["Align", "Count reads", "Trim and align"]);
});

test("an import is an exported workflow or a bare definition", () => {
  expect(readImport('{"version":1,"nodes":[]}', "rna.workflow.json")).toMatchObject({
    name: "rna",
    definition: { version: 1 },
  });
  expect(readImport('{"name":"A","definition":{"version":1}}', "x.json").name).toBe("A");
  expect(readImport('{"license":"MIT","definition":{"version":1}}', "x.json").license).toBe("MIT");
  expect(readImport("anything", "rna.yaml", () => ({ version: 1 })).name).toBe("rna");
  for (const bad of ["{", "[]", '{"version":2}', '{"definition":{}}'])
    expect(() => readImport(bad, "x.json"), bad).toThrow();
});

test("an input is required unless it says otherwise", () => {
  const definition = (inputs: object) => ({ version: 1, inputs }) as unknown as Definition;
  expect(needsFiles(definition({}))).toBe(false);
  expect(needsFiles(definition({ a: { type: "file" } }))).toBe(true);
  expect(needsFiles(definition({ a: { type: "file", required: false } }))).toBe(false);
});

test("nodes without a place stand in columns, and a cycle does no harm", () => {
  const definition = {
    version: 1,
    nodes: [{ id: "a" }, { id: "b" }, { id: "c" }],
    edges: [
      { id: "1", source: "a", target: "b" },
      { id: "2", source: "b", target: "c" },
    ],
  } as unknown as Definition;
  expect(boxes(definition).map((box) => box.x)).toEqual([0, 250, 500]);
  const cycle = {
    ...definition,
    edges: [...(definition.edges ?? []), { id: "3", source: "c", target: "a" }],
  } as Definition;
  expect(boxes(cycle)).toHaveLength(3);
});

test("a template is named by its file, or by its README", () => {
  const bare = readTemplate("x", { version: 1 }, "# Counts\n\nCounts things,\nslowly.\n");
  expect(bare).toMatchObject({ name: "Counts", description: "Counts things, slowly." });
  expect(readTemplate("x", { name: "A", definition: { version: 1 } }, "")?.name).toBe("A");
  expect(readTemplate("x", { version: 9 }, "")).toBeNull();
  expect(sampleNames({ inputs: { one: "a.txt", many: ["b.txt", "c.txt"] } })).toEqual({
    one: ["a.txt"],
    many: ["b.txt", "c.txt"],
  });
});

test("every example is a template that runs at a click", async () => {
  const templates = await loadTemplates();
  expect(templates.length).toBeGreaterThan(5);
  expect(templates[0]).toMatchObject(first); // the one that the welcome runs
  for (const { name, definition, samples } of templates) {
    for (const [input, { required }] of Object.entries(definition.inputs ?? {})) {
      if (required !== false) expect(samples[input]?.length, `${name}, ${input}`).toBeGreaterThan(0);
    }
  }
});
