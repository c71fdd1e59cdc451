import { expect, test } from "vitest";
import * as Y from "yjs";
import fastq from "../../../examples/fastq-quality/workflow.json";
import { differences, sorted as inOrder, lineDiff } from "../graph/diff.ts";
import { card, portsOf } from "../graph/ports.ts";
import type { Definition } from "../workflows/queries.ts";
import { readPiece } from "./clipboard.ts";
import { Document } from "./document.ts";
import { definitionOf, draw, freeName, LOCAL, namePattern, newId, replaceText, stepsBefore } from "./graph.ts";
import { freePlace } from "./kinds.ts";
import { located } from "./problems.ts";

const example = fastq.definition as unknown as Definition;

function edited(definition: Definition = example): Document {
  const document = new Document();
  draw(document.doc, definition, "server");
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
    nodes: [...(example.nodes ?? []), { id: "remark", type: "note", text: "hello", "x-size": 3 }],
  } as unknown as Definition;
  const { doc } = edited(whole);
  expect(definitionOf(doc)).toEqual(sorted(whole));
  expect(doc.getMap<Y.Map<unknown>>("nodes").get("measure")?.get("command")).toBeInstanceOf(Y.Text);
});

test("drawing what is there already writes nothing", () => {
  const { doc } = edited();
  let updates = 0;
  doc.on("update", () => updates++);
  draw(doc, example, "server");
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
  draw(document.doc, { ...document.definition(), "x-others": true } as Definition, "somebody else");
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
  document.paste(document.take([id]));
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
  expect(document.edges()).toHaveLength(1);
  expect(document.edges()[0]).toMatchObject({ sourceHandle: "out", targetHandle: "out" });
  const last = step("last", {});
  document.connect(many, null, last, null);
  expect(document.edges().find((edge) => edge.target === last)?.sourceHandle).toBeUndefined();
  document.remove([many], []);
  expect(document.edges()).toEqual([]);
});

test("a line drawn to a step ends in its input of that name, the one that waits, or a new one", () => {
  const document = edited({ version: 1 } as Definition);
  const make = (inputs: Record<string, object>) =>
    document.addNode({ type: "task", outputs: { out: { path: "o" } }, inputs } as never) ?? "";
  const source = make({});
  const end = (target: string) => {
    document.connect(source, "out", target, null);
    return document.edges().find((edge) => edge.target === target)?.targetHandle;
  };
  expect(end(make({ out: {}, other: {} }))).toBe("out");
  expect(end(make({ parts: {} }))).toBe("parts");
  expect(end(make({ parts: {}, more: {} }))).toBe("out");
  expect(end(make({ parts: { from: "inputs.reads" } }))).toBe("out");
  const later = make({ parts: {} });
  document.order(source, later);
  expect(document.edges().find((edge) => edge.target === later)?.sourceHandle).toBeUndefined();
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

test("a renamed port keeps its lines, a removed one does not", () => {
  const document = edited();
  const edge = example.edges?.[0];
  if (!edge?.sourceHandle) throw new Error("the example has a line that carries files");
  document.renamePort(edge.source, "outputs", edge.sourceHandle, "renamed");
  expect(document.edges()[0]?.sourceHandle).toBe("renamed");
  expect(portsOf(document.node(edge.source) as never, document.edges()).outputs.map((port) => port.name)).toContain(
    "renamed",
  );
  document.removePort(edge.source, "outputs", "renamed");
  expect(document.edges()).toEqual([]);
});

test("what is pasted has new ids and its own lines", () => {
  const document = edited();
  const piece = readPiece(JSON.stringify(fastq));
  if (!piece) throw new Error("a workflow can be pasted");
  const ids = document.paste(piece, { x: 0, y: 0 });
  expect(ids).toHaveLength(piece.nodes.length);
  expect(document.edges()).toHaveLength(2 * (example.edges?.length ?? 0));
  expect(readPiece("{}")).toBeNull();
  expect(readPiece('{"nodes": [{"id": "a b"}, 7]}')).toBeNull();
  expect(readPiece("just words")).toBeNull();
});

test("names and ids fit the contract", () => {
  for (let count = 0; count < 50; count++) expect(newId("n")).toMatch(namePattern);
  expect(freeName("2 reads!", () => false)).toBe("_2_reads_");
  expect(freeName("a", (name) => name === "a" || name === "a2")).toBe("a3");
});

test("problems are about their node", () => {
  const definition = { version: 1, nodes: [{ id: "a" }, { id: "b" }], edges: [{ id: "e", source: "a", target: "b" }] };
  const at = (path: string) => located({ path, message: "" }, definition as unknown as Definition).node;
  expect(at("nodes[1].command")).toBe("b");
  expect(at("edges[0].source")).toBe("b");
  expect(at("parameters.x")).toBeNull();
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
  const lines = lineDiff("a\nb\nc\nd\ne", "a\nb\nx\nd\ne", 1);
  expect(lines.map((line) => line.sign + line.text)).toEqual([" b", "-c", "+x", " d"]);
  expect(LOCAL).toBe("local");
});

test("the same value is the same text, whatever order its keys came in", () => {
  const text = (value: unknown) => JSON.stringify(inOrder(value));
  expect(text({ b: [{ d: 1, c: 2 }], a: null })).toBe(text({ a: null, b: [{ c: 2, d: 1 }] }));
  expect(text([2, 1])).toBe("[2,1]");
});

test("the steps before one are found near and far, also in a circle", () => {
  const edges = [
    { source: "a", target: "b" },
    { source: "b", target: "c" },
    { source: "x", target: "c" },
    { source: "c", target: "d" },
    { source: "d", target: "b" },
  ];
  expect(stepsBefore("c", edges)).toEqual(["a", "b", "d", "x"]);
  expect(stepsBefore("a", edges)).toEqual([]);
});
