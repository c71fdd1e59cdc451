import { expect, test, vi } from "vitest";
import * as Y from "yjs";
import fastq from "../../../../examples/fastq-quality/workflow.json";
import type { Definition, GraphNode } from "../../definition/model.ts";
import { differences } from "../../graph/diff.ts";
import { card } from "../../graph/ports.ts";
import { readPiece } from "./clipboard.ts";
import { Document } from "./document.ts";
import { addStep, freePlace, kinds } from "./kinds.ts";
import { rename, whyLeft } from "./rename.ts";
import { GraphStore } from "./store.ts";
import { definitionOf, idsOf, replaceText, writeDefinition } from "./ydoc.ts";

const example = fastq.definition as unknown as Definition;

function edited(definition: Definition = example): Document {
  const document = new Document();
  writeDefinition(document.doc, definition, "server");
  document.editable = true;
  document.undo.clear();
  return document;
}

function sorted(definition: Definition): unknown {
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  return {
    parameters: {},
    inputs: {},
    outputs: {},
    ...definition,
    nodes: (definition.nodes ?? []).toSorted(byId),
    edges: (definition.edges ?? []).toSorted(byId),
  };
}

test("a definition becomes a document and back without loss", () => {
  const whole = {
    ...example,
    "x-ours": { kept: [1, 2] },
    parameters: { q: { type: "object", default: { deep: [1] }, description: "Help" } },
    nodes: [
      ...(example.nodes ?? []),
      { id: "remark", type: "note", text: "hello", "x-size": 3 },
      {
        id: "all",
        type: "task",
        command: "true",
        env: { command: "x" },
        resources: { vcpu: 2 },
        retries: { max: 1, on: ["oom"] },
        scatter: { over: "[1]" },
        inputs: { a: { from: "inputs.reads" } },
      },
    ],
  } as unknown as Definition;
  const { doc } = edited(whole);
  expect(definitionOf(doc)).toEqual(sorted(whole));
  expect(doc.getMap<Y.Map<unknown>>("nodes").get("measure")?.get("command")).toBeInstanceOf(Y.Text);
});

test("drawing what is there already writes nothing", () => {
  const { doc } = edited();
  let updates = 0;
  doc.on("update", () => updates++);
  writeDefinition(doc, example, "server");
  expect(updates).toBe(0);
});

test("only the part of a text that differs is replaced", () => {
  const doc = new Y.Doc();
  const text = doc.getText("t");
  text.insert(0, "sort -k1 words.tsv");
  const deltas: unknown[] = [];
  text.observe((event) => deltas.push(event.delta));
  replaceText(text, "sort -k2,2 words.tsv");
  expect(text.toString()).toBe("sort -k2,2 words.tsv");
  expect(JSON.stringify(deltas)).not.toContain("words");
});

test("two people who edit two fields of one node both win", () => {
  const a = edited();
  const b = new Document();
  Y.applyUpdate(b.doc, Y.encodeStateAsUpdate(a.doc));
  b.editable = true;
  const id = example.nodes?.[0]?.id ?? "";
  a.setField(id, "name", "Renamed");
  b.setField(id, "image", "alpine:3");
  Y.applyUpdate(a.doc, Y.encodeStateAsUpdate(b.doc));
  Y.applyUpdate(b.doc, Y.encodeStateAsUpdate(a.doc));
  expect(a.node(id)).toMatchObject({ name: "Renamed", image: "alpine:3" });
  expect(b.definition()).toEqual(a.definition());
});

test("undo takes back one's own edits only, a gesture at a time", () => {
  const document = edited();
  const id = example.nodes?.[0]?.id ?? "";
  document.move([{ id, x: 10, y: 20 }]);
  writeDefinition(document.doc, { ...document.definition(), "x-others": true } as Definition, "somebody else");
  const added = document.addNode({ type: "task", name: "New" } as never);
  expect(added && document.node(added)?.name).toBe("New");
  document.undo.undo();
  expect(added && document.node(added)).toBeNull();
  document.undo.undo();
  expect(document.node(id)?.position).toEqual(example.nodes?.[0]?.position);
  expect(document.definition()["x-others"]).toBe(true);
});

test("a document that may not be edited stays as it is, whatever is tried", () => {
  const document = edited();
  const before = JSON.stringify(document.definition());
  document.editable = false;
  const id = example.nodes?.[0]?.id ?? "";
  document.addNode({ type: "task" } as never);
  document.remove([id], []);
  document.move([{ id, x: 1, y: 1 }]);
  document.setField(id, "name", "no");
  document.connect(id, null, id, null);
  document.paste(document.take([id]), { x: 1, y: 1 });
  document.tidy();
  document.replace({ version: 1 });
  document.setNamed("parameters", "p", {});
  document.undo.undo();
  expect(JSON.stringify(document.definition())).toBe(before);
});

test("lines carry files where that is clear, and never make a circle", () => {
  const document = edited({ version: 1 });
  const step = (name: string, outputs: Record<string, unknown>) =>
    document.addNode({ type: "task", name, outputs } as never) ?? "";
  const one = step("one", { out: { path: "o" } });
  const many = step("many", { a: { path: "a" }, b: { path: "b" } });
  document.connect(one, null, many, null);
  document.connect(many, "a", one, null);
  document.connect(one, null, many, null);
  expect(document.links()).toHaveLength(1);
  expect(document.links()[0]).toMatchObject({ sourceHandle: "out", targetHandle: "out" });
  const last = step("last", {});
  document.connect(many, null, last, null);
  expect(document.links().find((edge) => edge.target === last)?.sourceHandle).toBeUndefined();
  document.remove([many], []);
  expect(document.links()).toEqual([]);
});

test("a line drawn to a step ends in its input of that name, the one that waits, or a new one", () => {
  const document = edited({ version: 1 } as Definition);
  const make = (inputs: Record<string, object>) =>
    document.addNode({ type: "task", outputs: { out: { path: "o" } }, inputs } as never) ?? "";
  const source = make({});
  const end = (target: string) => {
    document.connect(source, "out", target, null);
    return document.links().find((edge) => edge.target === target)?.targetHandle;
  };
  expect(end(make({ out: {}, other: {} }))).toBe("out");
  expect(end(make({ parts: {} }))).toBe("parts");
  expect(end(make({ parts: {}, more: {} }))).toBe("out");
  expect(end(make({ parts: { from: "inputs.reads" } }))).toBe("out");
  const later = make({ parts: {} });
  document.order(source, later);
  expect(document.links().find((edge) => edge.target === later)?.sourceHandle).toBeUndefined();
});

test("a new card lies on no other", () => {
  const at = { x: 0, y: 0 };
  const cards: { position: { x: number; y: number }; width: number; height: number }[] = [];
  for (let number = 0; number < 30; number++) {
    cards.push({ position: freePlace(cards, at), width: card.width, height: card.head + card.row });
  }
  const apart = cards.every((one, index) =>
    cards
      .slice(index + 1)
      .every(
        (other) =>
          Math.abs(one.position.x - other.position.x) >= one.width ||
          Math.abs(one.position.y - other.position.y) >= one.height,
      ),
  );
  expect(apart).toBe(true);
  expect(cards[0]?.position).toEqual(at);
});

test("a removed port takes its lines along", () => {
  const document = edited();
  const edge = example.edges?.[0];
  if (!edge?.sourceHandle) throw new Error("the example has a line that carries files");
  document.removePort(edge.source, "outputs", edge.sourceHandle);
  expect(document.links()).toEqual([]);
});

test("what is pasted has new ids and its own lines", () => {
  const document = edited();
  const piece = readPiece(JSON.stringify(fastq));
  if (!piece) throw new Error("a workflow can be pasted");
  const ids = document.paste(piece, { x: 0, y: 0 });
  expect(ids).toHaveLength(piece.nodes.length);
  expect(document.links()).toHaveLength(2 * (example.edges?.length ?? 0));
  expect(readPiece("{}")).toBeNull();
  expect(readPiece('{"nodes": [{"id": "a b"}, 7]}')).toBeNull();
  expect(readPiece("just words")).toBeNull();
});

test("differences name what changed, and leave places out", () => {
  const document = edited();
  const id = example.nodes?.[0]?.id ?? "";
  document.move([{ id, x: 999, y: 999 }]);
  expect(differences(example, document.definition())).toEqual([]);
  document.setField(id, "command", "true\n");
  document.edit(() => document.roots.edges.clear());
  expect(differences(example, document.definition())).toEqual([
    { id, name: example.nodes?.[0]?.name, kind: "changed", fields: ["command"] },
    { id: "edges", name: "lines", kind: "changed", fields: [`${example.edges?.length} of them`] },
  ]);
});

/** nobody answers a rename. */
const nobody = async () => null;

const named: Definition = {
  version: 1,
  inputs: { reads: { type: "files", required: true } },
  nodes: [
    {
      id: "trim",
      type: "task",
      command: "echo $ITEM",
      scatter: { over: "inputs.reads" },
      outputs: { out: { path: "o" } },
    },
    { id: "count", type: "task", command: "cat $INPUT_parts", inputs: { reads: { from: "inputs.reads" } } },
  ] as unknown as GraphNode[],
  edges: [{ id: "e", source: "trim", sourceHandle: "out", target: "count", targetHandle: "parts" }],
  outputs: { result: { from: "trim.out" } },
};

test("a step gets another id while somebody else types in its command and connects it", async () => {
  const ours = edited(named);
  const theirs = new Document();
  Y.applyUpdate(theirs.doc, Y.encodeStateAsUpdate(ours.doc));
  theirs.editable = true;
  await rename(ours, nobody, { kind: "step", name: "trim" }, "clean");
  theirs.text("trim", "command")?.insert(10, " # typed");
  const other = theirs.addNode({ type: "task" } as never) ?? "";
  theirs.order("trim", other);
  Y.applyUpdate(ours.doc, Y.encodeStateAsUpdate(theirs.doc));
  Y.applyUpdate(theirs.doc, Y.encodeStateAsUpdate(ours.doc));
  for (const document of [ours, theirs]) {
    const { nodes, edges, outputs } = document.definition();
    expect(nodes?.find((node) => node.id === "clean")?.command).toBe("echo $ITEM # typed");
    expect(nodes?.some((node) => node.id === "trim")).toBe(false);
    expect(edges?.map((edge) => edge.source)).toEqual(["clean", "clean"]);
    expect(outputs?.result?.from).toBe("clean.out");
  }
  expect(ours.keyOf("clean")).toBe("trim");
  ours.undo.undo();
  expect(ours.definition().outputs?.result?.from).toBe("trim.out");
  expect(ours.node("trim")?.id).toBe("trim");
});

test("a rename makes what the server answers and what needs no parser one step of undo, and tells what is left", async () => {
  const document = edited(named);
  const before = document.definition();
  const answer = async () => [{ path: "nodes.trim.scatter.over", value: "inputs.samples" }];
  expect(await rename(document, answer, { kind: "input", name: "reads" }, "samples")).toBeNull();
  const { inputs, nodes } = document.definition();
  expect(Object.keys(inputs ?? {})).toEqual(["samples"]);
  expect(nodes?.find((node) => node.id === "count")?.inputs?.reads?.from).toBe("inputs.samples");
  expect(nodes?.find((node) => node.id === "trim")?.scatter?.over).toBe("inputs.samples");
  document.undo.undo();
  expect(document.definition()).toEqual(before);

  const left = await rename(document, nobody, { kind: "input", name: "reads" }, "samples");
  expect(left?.expressions.map((each) => each.path)).toEqual(["nodes.trim.scatter.over"]);
  expect(document.node("trim")?.scatter?.over).toBe("inputs.reads");
});

test("renaming a port changes its lines and offers its commands", async () => {
  const document = edited(named);
  const left = await rename(document, nobody, { kind: "port", node: "count", name: "parts" }, "texts");
  expect(left?.expressions).toEqual([]);
  expect(document.links()[0]?.targetHandle).toBe("texts");
  expect(document.node("count")?.command).toBe("cat $INPUT_parts");
  await rename(document, nobody, { kind: "output", node: "trim", name: "out" }, "lines");
  expect(document.links()[0]?.sourceHandle).toBe("lines");
  expect(Object.keys(document.node("trim")?.outputs ?? {})).toEqual(["lines"]);
  expect(document.definition().outputs?.result?.from).toBe("trim.lines");
});

test("renaming an input of a step leaves the output of its name alone", async () => {
  const [trim, count] = named.nodes ?? [];
  const document = edited({
    ...named,
    nodes: [
      { ...trim, inputs: { out: { from: "inputs.reads" } }, command: "cat" },
      { ...count, command: "true", when: 'nodes.trim.outputs.out != ""' },
    ] as GraphNode[],
  });
  const ask = vi.fn(async () => [{ path: "nodes.count.when", value: "nodes.trim.outputs.texts" }]);
  expect(await rename(document, ask, { kind: "port", node: "trim", name: "out" }, "texts")).toBeNull();
  expect(ask).not.toHaveBeenCalled();
  expect(document.node("trim")).toMatchObject({ inputs: { texts: {} }, outputs: { out: { path: "o" } } });
  expect(document.node("count")?.when).toBe('nodes.trim.outputs.out != ""');
  expect(document.definition().outputs?.result?.from).toBe("trim.out");
  expect(document.links()[0]?.sourceHandle).toBe("out");
});

test("what is left of a rename says why", async () => {
  const why = async (ask: () => Promise<[] | null>, live: boolean) => {
    const left = await rename(edited(named), ask, { kind: "input", name: "reads" }, "samples");
    return left && whyLeft(left, live);
  };
  expect(await why(nobody, true)).toContain("can't be reached");
  expect(await why(nobody, false)).toContain("only with live editing");
  expect(await why(async () => [], true)).toContain("have errors");
});

test("an expression that somebody changed since the server read it is not overwritten", async () => {
  const document = edited(named);
  const slow = async () => {
    document.setField("trim", "scatter", { over: "inputs.reads + inputs.reads" });
    return [{ path: "nodes.trim.scatter.over", value: "inputs.samples" }];
  };
  const left = await rename(document, slow, { kind: "input", name: "reads" }, "samples");
  expect(document.node("trim")?.scatter?.over).toBe("inputs.reads + inputs.reads");
  expect(left?.expressions).toHaveLength(2);
});

// The cases are those of internal/domain/document, which must agree.
test.each([
  ["the holder keeps it", { a: "x", b: "x" }, { b: "x" }, { a: "x_2", b: "x", c: "c" }],
  ["the key keeps it", { a: "c" }, {}, { a: "c_2", b: "b", c: "c" }],
  ["else the order of keys", { b: "x", c: "x" }, {}, { a: "a", b: "x", c: "x_2" }],
  ["a number that is taken", { a: "x", b: "x", c: "x_2" }, {}, { a: "x", b: "x_3", c: "x_2" }],
  ["two that change their names", { a: "b", b: "a" }, { a: "b", b: "a" }, { a: "b", b: "a", c: "c" }],
  ["an empty id is none", { a: "" }, {}, { a: "a", b: "b", c: "c" }],
])("steps that take one id get different ones: %s", (_name, renames, held, want) => {
  const { doc, roots } = edited({
    version: 1,
    nodes: ["a", "b", "c"].map((id) => ({ id, type: "task" }) as GraphNode),
  });
  for (const [key, id] of Object.entries(renames)) roots.nodes.get(key)?.set("id", id);
  const ids = idsOf(roots.nodes, new Map(Object.entries(held)));
  expect(Object.fromEntries(ids)).toEqual(want);
  doc.destroy();
});

test("a definition that was renamed says the same when it is written again", async () => {
  const document = edited(named);
  await rename(document, nobody, { kind: "step", name: "trim" }, "clean");
  let updates = 0;
  document.doc.on("update", () => updates++);
  writeDefinition(document.doc, document.definition(), "server");
  expect(updates).toBe(0);
});

test("edits name steps and lines by their ids", async () => {
  const document = edited(named);
  await rename(document, nobody, { kind: "step", name: "trim" }, "clean");
  const before = document.definition();
  document.apply([
    { path: "nodes.clean.command", value: "true" },
    { path: "nodes.count.inputs.reads.optional", value: true },
    { path: "nodes.clean.scatter", value: null },
    { path: "inputs.birds", value: { type: "files" } },
    { path: "edges.e", value: null },
    { path: "edges.wait_1", value: { source: "clean", target: "count" } },
    { path: "nodes.nowhere.command", value: "x" },
  ]);
  expect(document.node("trim")).toMatchObject({ id: "clean", command: "true" });
  expect(document.node("trim")?.scatter).toBeUndefined();
  expect(document.node("count")?.inputs?.reads).toEqual({ from: "inputs.reads", optional: true });
  expect(document.definition()).toMatchObject({ inputs: { birds: { type: "files" } } });
  expect(document.links()).toEqual([{ id: "wait_1", source: "trim", target: "count" }]);
  document.undo.undo();
  expect(document.definition()).toEqual(before);
});

test("a step for each file comes with its input, and undo takes both", () => {
  const document = edited({ version: 1 });
  const graph = new GraphStore(document);
  const each = kinds.find((kind) => kind.key === "scatter-files");
  if (!each) throw new Error("there is such a step");
  const add = () => document.node(addStep(graph, each, { x: 0, y: 0 }) ?? "")?.scatter?.over;
  expect(add()).toBe("inputs.files");
  expect(document.definition().inputs).toEqual({ files: { type: "files", required: true } });
  expect(add()).toBe("inputs.files");
  document.undo.undo();
  document.undo.undo();
  expect(document.definition()).toMatchObject({ nodes: [], inputs: {} });
  document.setNamed("inputs", "files", { type: "file" });
  expect(add()).toBe("inputs.files2");
});

test("text outside of the basic plane is replaced whole", () => {
  const doc = new Y.Doc();
  const text = doc.getText("t");
  text.insert(0, "a \u{1f600} b");
  replaceText(text, "a \u{1f601} b");
  expect(text.toString()).toBe("a \u{1f601} b");
});

/** copyOf is the document of somebody else who has the same workflow open. */
function copyOf(document: Document): Document {
  const copy = new Document();
  Y.applyUpdate(copy.doc, Y.encodeStateAsUpdate(document.doc));
  copy.editable = true;
  return copy;
}

function exchange(...documents: Document[]): void {
  for (const from of documents)
    for (const to of documents) if (from !== to) Y.applyUpdate(to.doc, Y.encodeStateAsUpdate(from.doc));
}

/** withoutTexts is a document that another program wrote, without the texts that people type in. */
function withoutTexts(fields: Record<string, unknown>): Document {
  const document = edited({ version: 1 });
  document.roots.nodes.set("a", new Y.Map(Object.entries(fields)));
  return document;
}

test.each([
  ["none", { type: "task" }, ""],
  ["a plain one", { type: "task", command: "sort\n" }, "sort\n"],
])("two people who begin to type apart into a step with %s type into one command", (_name, fields, before) => {
  const ada = withoutTexts(fields);
  const bo = copyOf(ada);
  ada.startText("a", "command");
  ada.edit(() => ada.text("a", "command")?.insert(0, "# ada\n"));
  bo.startText("a", "command");
  bo.edit(() => bo.text("a", "command")?.insert(before.length, "# bo\n"));
  exchange(ada, bo);
  const { command } = ada.node("a") ?? {};
  expect(command).toContain("# ada\n");
  expect(command).toContain("# bo\n");
  expect(command).toHaveLength(`${before}# ada\n# bo\n`.length);
  expect(bo.node("a")?.command).toBe(command);
});

test("a command that is applied as code joins what somebody types into the step meanwhile", () => {
  const ada = withoutTexts({ type: "task" });
  const bo = copyOf(ada);
  ada.startText("a", "command");
  ada.edit(() => ada.text("a", "command")?.insert(0, "# ada\n"));
  bo.replace({ version: 1, nodes: [{ id: "a", type: "task", command: "# bo\n" }] } as unknown as Definition);
  exchange(ada, bo);
  expect(["# ada\n# bo\n", "# bo\n# ada\n"]).toContain(bo.node("a")?.command);
  bo.undo.undo();
  expect(bo.node("a")?.command).toBe("# ada\n");
});

test("looking at a step without a command changes nothing of the definition", () => {
  const document = edited({ version: 1, nodes: [{ id: "a", type: "task" }] } as unknown as Definition);
  const before = document.definition();
  document.startText("a", "command");
  expect(document.definition()).toEqual(before);
  expect(document.text("a", "command")).toBeInstanceOf(Y.Text);
  const legacy = withoutTexts({ type: "task" });
  legacy.startText("a", "command");
  expect(legacy.node("a")).toEqual({ id: "a", type: "task" });
});

test("code without a command empties it, and keeps what somebody types meanwhile", () => {
  const ada = edited(named);
  const bo = copyOf(ada);
  const { command: _, ...count } = named.nodes?.[1] ?? ({} as GraphNode);
  ada.replace({ ...named, nodes: [named.nodes?.[0] as GraphNode, count as GraphNode] });
  expect(ada.node("count")?.command).toBeUndefined();
  bo.edit(() => bo.text("count", "command")?.insert(0, "# bo\n"));
  exchange(ada, bo);
  expect(ada.node("count")?.command).toBe("# bo\n");
  expect(bo.node("count")?.command).toBe("# bo\n");
});

/** plain is a document whose values are not shared types yet, as earlier versions wrote it. */
function plain(): Document {
  const document = edited({ version: 1 });
  const { nodes, parameters } = document.roots;
  const task = { type: "task", command: "x", resources: { gpu: 1 }, outputs: new Y.Map([["out", { path: "o" }]]) };
  nodes.set("a", new Y.Map(Object.entries(task)));
  nodes.set("n", new Y.Map(Object.entries({ type: "note", text: "Note." })));
  parameters.set("q", { type: "integer", description: "Help." });
  return document;
}

const fresh = () => edited(plain().definition());

test.each([
  ["a document of an earlier version", plain],
  ["a new document", fresh],
])("two people who change the same things of %s apart both win", (_name, make) => {
  const ada = make();
  const bo = copyOf(ada);
  const q = ada.named("parameters", "q") as object;
  const change = (document: Document, own: Record<string, unknown>[], text: string) => {
    const [resources, retries, env] = own;
    document.setField("a", "resources", { ...document.node("a")?.resources, ...resources });
    document.setField("a", "retries", retries);
    document.setField("a", "env", env);
    document.setField("n", "text", text);
  };
  change(ada, [{ vcpu: 2 }, { max: 1 }, { A: "1" }], "Ada. Note.");
  change(bo, [{ ramGb: 4 }, { backoffSeconds: 9 }, { B: "2" }], "Note. Bo.");
  exchange(ada, bo);
  for (const document of [ada, bo]) {
    expect(document.node("a")).toMatchObject({
      resources: { gpu: 1, vcpu: 2, ramGb: 4 },
      retries: { max: 1, backoffSeconds: 9 },
      env: { A: "1", B: "2" },
    });
    expect(document.node("n")?.text).toBe("Ada. Note. Bo.");
  }
  // Ports and parameters are maps from the first change on.
  ada.setNamed("parameters", "q", { ...q, title: "Q" });
  ada.setField("a", "outputs", { out: { path: "p" } });
  exchange(ada, bo);
  ada.setNamed("parameters", "q", { ...q, title: "Ada's", description: "Ada. Help." });
  bo.setNamed("parameters", "q", { ...q, title: "Q", minimum: 3, description: "Help. Bo." });
  ada.setField("a", "outputs", { out: { path: "ada" } });
  bo.setField("a", "outputs", { out: { path: "p", many: true }, more: { path: "m" } });
  exchange(ada, bo);
  for (const document of [ada, bo]) {
    expect(document.named("parameters", "q")).toEqual({
      type: "integer",
      title: "Ada's",
      minimum: 3,
      description: "Ada. Help. Bo.",
    });
    expect(document.node("a")?.outputs).toEqual({ out: { path: "ada", many: true }, more: { path: "m" } });
  }
  expect(bo.definition()).toEqual(ada.definition());
});

test("undo takes back one's own change of what somebody else changed, too", () => {
  const ada = fresh();
  const bo = copyOf(ada);
  ada.step(() => ada.setField("a", "retries", { max: 1 }));
  ada.step(() => ada.setNamed("parameters", "q", { type: "integer", description: "Ada. Help." }));
  exchange(ada, bo);
  bo.setField("a", "retries", { max: 1, backoffSeconds: 9 });
  bo.setNamed("parameters", "q", { type: "integer", description: "Ada. Help. Bo." });
  exchange(ada, bo);
  ada.undo.undo();
  ada.undo.undo();
  expect(ada.node("a")?.retries).toEqual({ backoffSeconds: 9 });
  expect(ada.named("parameters", "q")).toEqual({ type: "integer", description: "Help. Bo." });
  ada.undo.redo();
  expect(ada.node("a")?.retries).toEqual({ max: 1, backoffSeconds: 9 });
});

test("undo takes back what was added, whatever its name", () => {
  const document = fresh();
  const before = document.definition();
  document.step(() => document.setNamed("parameters", "resources", { type: "string" }));
  document.step(() => document.setField("a", "env", { command: "x", text: "y" }));
  document.step(() => document.setField("a", "inputs", { text: {}, resources: {} }));
  for (let step = 0; step < 3; step++) document.undo.undo();
  expect(document.definition()).toEqual(before);
});

test("what is emptied is left out of the definition, and takes what others add meanwhile", () => {
  const ada = fresh();
  const bo = copyOf(ada);
  for (const field of ["resources", "outputs", "command"]) ada.setField("a", field, undefined);
  ada.setField("n", "text", undefined);
  ada.setNamed("parameters", "q", { type: "integer" });
  expect(ada.node("a")).toEqual({ id: "a", type: "task" });
  expect(ada.node("n")).toEqual({ id: "n", type: "note" });
  expect(ada.named("parameters", "q")).toEqual({ type: "integer" });
  bo.setField("a", "resources", { gpu: 1, ramGb: 4 });
  exchange(ada, bo);
  expect(ada.node("a")).toEqual({ id: "a", type: "task", resources: { ramGb: 4 } });
});
