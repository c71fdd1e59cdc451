import { expect, test } from "vitest";
import { commandVariables, expressionNames } from "./completion.ts";
import { textEdits } from "./diff.ts";
import { keyed, merge, mergeText, renamedIds } from "./merge.ts";
import type { Definition, GraphNode } from "./model.ts";
import { freeName, namePattern, newId } from "./names.ts";
import { stepsAfter, stepsBefore } from "./order.ts";
import { byStep, faultyLines, findingsOf, inWords, isAt } from "./problems.ts";
import { expressionReferences, type Name, referencesIn, referencesTo, renamed } from "./references.ts";

const definition = {
  version: 1,
  inputs: { reads: { type: "files" } },
  parameters: { limit: { type: "integer", default: 1 } },
  nodes: [
    {
      id: "trim",
      type: "task",
      command: 'echo "$ITEM" "$PARAM_limit"',
      scatter: { over: "inputs.reads" },
      outputs: { out: { path: "o" } },
    },
    {
      id: "count",
      type: "task",
      command: 'open(os.environ["INPUT_parts_LIST"]); cat $INPUT_parts $MY_INPUT_parts',
      when: 'params.limit > 0 && nodes.trim.outputs.out != "nodes.trim.outputs.out"',
      inputs: { reads: { from: "inputs.reads" } },
      env: { A: "$PARAM_limit" },
    },
  ],
  edges: [{ id: "e", source: "trim", sourceHandle: "out", target: "count", targetHandle: "parts" }],
  outputs: { result: { from: "trim.out" } },
} as unknown as Definition;

test.each<[Name, string[]]>([
  [{ kind: "input", name: "reads" }, ["nodes.trim.scatter.over", "nodes.count.inputs.reads.from"]],
  [{ kind: "parameter", name: "limit" }, ["nodes.trim.command", "nodes.count.when", "nodes.count.env.A"]],
  [{ kind: "step", name: "trim" }, ["edges.e.source", "nodes.count.when", "outputs.result.from"]],
  [{ kind: "output", node: "trim", name: "out" }, ["edges.e.sourceHandle", "nodes.count.when", "outputs.result.from"]],
  [
    { kind: "port", node: "count", name: "parts" },
    ["edges.e.targetHandle", "nodes.count.command", "nodes.count.command"],
  ],
])("everything that refers to %j is found", (what, paths) => {
  expect(referencesTo(definition, what).map((each) => each.path)).toEqual(paths);
});

test("a reference knows where the name is in its text", () => {
  for (const { text, start, end, to } of referencesIn(definition)) expect(text.slice(start, end)).toBe(to.name);
});

test("a name is replaced in every place, and nowhere else", () => {
  const edits = renamed(referencesTo(definition, { kind: "output", node: "trim", name: "out" }), "texts");
  expect(edits).toEqual([
    { path: "edges.e.sourceHandle", value: "texts" },
    { path: "nodes.count.when", value: 'params.limit > 0 && nodes.trim.outputs.texts != "nodes.trim.outputs.out"' },
    { path: "outputs.result.from", value: "trim.texts" },
  ]);
  const port = renamed(referencesTo(definition, { kind: "port", node: "count", name: "parts" }), "p");
  expect(port[1]?.value).toBe('open(os.environ["INPUT_p_LIST"]); cat $INPUT_p $MY_INPUT_parts');
});

test.each([
  ["inputs.a + inputs . `b`", ["a", "b"]],
  ["'inputs.a' == \"params.b\" // inputs.c\n && params.d", ["d"]],
  ["x.inputs.a || my_inputs.b", []],
])("the names in %s", (text, names) => {
  expect(expressionReferences("when", text).map((each) => each.to.name)).toEqual(names);
});

test("a command is offered what it can read, an expression what comes before it", () => {
  const [trim, count] = definition.nodes as [GraphNode, GraphNode];
  const variables = (node: GraphNode) => commandVariables(definition, node).map((each) => each.text);
  expect(variables(count)).toEqual(expect.arrayContaining(["INPUT_parts", "INPUT_parts_LIST", "INPUT_reads", "A"]));
  expect(variables(count)).not.toContain("ITEM");
  expect(variables(trim)).toContain("ITEM");
  const names = (id: string) => expressionNames(definition, id).map((each) => each.text);
  expect(names("count")).toEqual(["inputs.reads", "params.limit", "nodes.trim.outputs.out"]);
  expect(names("trim")).not.toContain("nodes.trim.outputs.out");
});

test("the steps before and after one are found near and far, also in a circle", () => {
  const edges = [
    { source: "a", target: "b" },
    { source: "b", target: "c" },
    { source: "x", target: "c" },
    { source: "c", target: "d" },
    { source: "d", target: "b" },
  ];
  expect([...stepsBefore("c", edges)].toSorted()).toEqual(["a", "b", "d", "x"]);
  expect([...stepsBefore("a", edges)]).toEqual([]);
  expect([...stepsAfter("a", edges)].toSorted()).toEqual(["b", "c", "d"]);
  expect([...stepsAfter("d", edges)].toSorted()).toEqual(["b", "c"]);
});

test("names and ids fit the contract", () => {
  for (let count = 0; count < 50; count++) expect(newId("n")).toMatch(namePattern);
  expect(freeName("2 reads!", () => false)).toBe("_2_reads_");
  expect(freeName("a", (name) => name === "a" || name === "a2")).toBe("a3");
});

/** edited applies edits to a text. */
function edited(before: string, after: string): string {
  let text = before;
  for (const { at, remove, insert } of textEdits(before, after).toReversed())
    text = text.slice(0, at) + insert + text.slice(at + remove);
  return text;
}

test.each([
  ["", "a"],
  ["a\nb\nc", "a\nx\nc\nd"],
  ["sort -k1 words.tsv", "sort -k2,2 words.tsv"],
  ["a \u{1f600} b", "a \u{1f601} b"],
  ["a\n\n\nb", "\na\nb\n"],
])("edits make %j say %j", (before, after) => {
  expect(edited(before, after)).toBe(after);
});

test("only what differs is replaced, in several places", () => {
  expect(textEdits("one two\nthree\nfour five\n", "one 2\nthree\n4 five\n")).toEqual([
    { at: 4, remove: 3, insert: "2" },
    { at: 14, remove: 4, insert: "4" },
  ]);
});

test.each([
  ["both insert", "a\nb\n", "a\nmine\nb\n", "a\nb\ntheirs\n", "a\nmine\nb\ntheirs\n"],
  ["both insert in one place", "ab", "a mine b", "a theirs b", "a theirs  mine b"],
  ["one removes what the other leaves", "one two three", "one three", "one two three four", "one three four"],
  ["both make the same change", "a\n", "a\nb\n", "a\nb\n", "a\nb\n"],
  ["mine alone", "a", "b", "a", "b"],
])("a text has what both wrote: %s", (_name, base, mine, theirs, want) => {
  expect(mergeText(base, mine, theirs)).toBe(want);
});

test("every character that somebody typed into a text survives a merge", () => {
  const base = "set -e\nsort words.tsv > sorted.tsv\nuniq sorted.tsv\n";
  const mine = base.replace("words", "MINE1").replace("uniq", "MINE2 uniq");
  const theirs = `THEIRS1${base.replace("sorted.tsv\nuniq", "sorted.tsv THEIRS2\nuniq THEIRS3")}`;
  const merged = mergeText(base, mine, theirs);
  for (const typed of ["MINE1", "MINE2", "THEIRS1", "THEIRS2", "THEIRS3"]) expect(merged).toContain(typed);
});

const step = (id: string, more: object = {}) => ({ id, type: "task", ...more }) as unknown as GraphNode;
const say = (nodes: GraphNode[], more: object = {}) => keyed({ version: 1, nodes, ...more } as Definition, (id) => id);

test("changes to different fields, ports and texts of one step are all kept", () => {
  const ports = { a: { path: "a" }, b: { path: "b" } };
  const base = say([step("s", { command: "one\ntwo\n", outputs: ports })]);
  const mine = say([
    step("s", { command: "one\ntwo\nmine\n", name: "Mine", outputs: { ...ports, a: { path: "mine" } } }),
  ]);
  const theirs = say([
    step("s", { command: "theirs\none\ntwo\n", image: "x", outputs: { ...ports, b: { path: "theirs" } } }),
  ]);
  expect(merge(base, mine, theirs).result.nodes.get("s")).toEqual(
    step("s", {
      command: "theirs\none\ntwo\nmine\n",
      name: "Mine",
      image: "x",
      outputs: { a: { path: "mine" }, b: { path: "theirs" } },
    }),
  );
});

test("what mine added is added, what it removed is gone, and the rest is theirs", () => {
  const edge = { id: "e", source: "a", target: "b" };
  const base = say([step("a"), step("b"), step("c")], {
    edges: [edge],
    parameters: { p: {} },
    inputs: { i: { x: 1 } },
  });
  const mine = say([step("a"), step("c"), step("new")], { inputs: { i: { x: 1 }, mine: {} } });
  const theirs = say([step("a"), step("b"), step("c"), step("other")], {
    edges: [edge],
    parameters: { p: {} },
    inputs: { i: { x: 2 } },
    outputs: { made: {} },
  });
  const { result, kept } = merge(base, mine, theirs);
  expect([...result.nodes.keys()]).toEqual(["a", "c", "other", "new"]);
  expect([...result.edges]).toEqual([]);
  expect(result.rest).toEqual({ version: 1, parameters: {}, inputs: { i: { x: 2 }, mine: {} }, outputs: { made: {} } });
  expect(kept).toEqual([]);
});

test("a step that somebody changed or connected is not removed", () => {
  const base = say([step("a"), step("b"), step("c")]);
  const mine = say([step("c")]);
  const theirs = say([step("a", { command: "typed" }), step("b"), step("c")], {
    edges: [{ id: "e", source: "b", target: "c" }],
  });
  const { result, kept } = merge(base, mine, theirs);
  expect([...result.nodes.keys()]).toEqual(["a", "c", "b"]);
  expect(kept.map((node) => node.id)).toEqual(["a", "b"]);
});

test("names that objects inherit are names like others", () => {
  const base = say([step("a")], { inputs: {} });
  const mine = say([step("a"), step("constructor")], { inputs: { toString: { type: "file" }, __proto__: 1 } });
  const { result } = merge(base, mine, base);
  expect([...result.nodes.keys()]).toEqual(["a", "constructor"]);
  expect(Object.keys(result.rest.inputs as object)).toEqual(["toString"]);
});

test("a step that is the same but for its id, or in the same place, was renamed", () => {
  const position = { x: 10, y: 20 };
  const base = { version: 1, nodes: [step("a", { command: "x" }), step("b", { position }), step("c")] } as Definition;
  const mine = {
    version: 1,
    nodes: [step("one", { command: "x" }), step("two", { position, command: "changed" }), step("c"), step("fresh")],
  } as Definition;
  expect([...renamedIds(base, mine)]).toEqual([
    ["one", "a"],
    ["two", "b"],
  ]);
});

test("a problem is about a field and what is inside of it", () => {
  const problem = { path: "", message: "", code: "x", node: "a", edge: null, fix: null };
  expect(isAt({ ...problem, field: "inputs.parts.from" }, "inputs.parts")).toBe(true);
  expect(isAt({ ...problem, field: "environment.pip[0]" }, "environment.pip")).toBe(true);
  expect(isAt({ ...problem, field: "inputs.parts2" }, "inputs.parts")).toBe(false);
});

test("a finding says what it is about by names", () => {
  const nodes = [{ id: "a", name: "Trim reads" }, { id: "b" }] as GraphNode[];
  const edges = [{ id: "e", source: "a", target: "b" }];
  const problem = { path: "", message: "", code: "x", node: null, edge: null, field: "", fix: null };
  const onLine = { ...problem, node: "b", edge: "e" };
  const found = findingsOf([{ ...problem, node: "a" }, onLine, problem], [onLine], { version: 1, nodes, edges });
  expect(found.map(({ about, warning }) => [about, warning])).toEqual([
    ["Trim reads", false],
    ["Line from Trim reads to b", false],
    ["Workflow", false],
    ["Line from Trim reads to b", true],
  ]);
  expect([...byStep(found).keys()]).toEqual(["a", "b"]);
  expect([...faultyLines(found)]).toEqual(["e"]);
  expect([...faultyLines(found.slice(3))]).toEqual([]);
});

test("a finding names its step once", () => {
  const nodes = [{ id: "n_x7", name: "Trim reads", type: "task", command: "true" }] as unknown as GraphNode[];
  const problem = { path: "nodes[0].when", code: "x", edge: null, field: "when", fix: null };
  const [plain, named, whole] = findingsOf(
    [
      { ...problem, node: "n_x7", message: "the list is empty" },
      { ...problem, node: "n_x7", message: '"Trim reads" has no command' },
      { ...problem, node: null, message: "the workflow has no steps to run" },
    ],
    [],
    { version: 1, nodes },
  ).map(inWords);
  expect(plain).toBe("Trim reads: the list is empty");
  expect(named).toBe('"Trim reads" has no command');
  expect(whole).toBe("the workflow has no steps to run");
});
