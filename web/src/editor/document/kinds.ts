// The steps that can be added.
import { Code, FileStack, GitBranch, ListTree, type LucideIcon, Merge, StickyNote, Terminal } from "lucide-react";
import type { GraphNode } from "../../definition/model.ts";
import { card } from "../../graph/ports.ts";
import type { Sized } from "../../graph/view.ts";
import type { Document, End } from "./document.ts";
import type { GraphStore } from "./store.ts";

export interface Kind {
  key: string;
  name: string;
  about: string;
  words: string;
  icon: LucideIcon;
  node: Omit<GraphNode, "id">;
  /** The input of the workflow that the step runs over. */
  over?: string;
}

// A step that is added reuses what it computed before: running again after an edit is then quick.
const task = (node: Partial<GraphNode>) => ({ type: "task", cache: true, ...node }) as Omit<GraphNode, "id">;

export const kinds: Kind[] = [
  {
    key: "bash",
    name: "Shell step",
    about: "Runs a bash script",
    words: "bash shell command script task",
    icon: Terminal,
    node: task({
      name: "Shell step",
      command: 'echo "hello" > result.txt\n',
      outputs: { result: { path: "result.txt", many: false, optional: false } },
    }),
  },
  {
    key: "python",
    name: "Python step",
    about: "Runs a Python script",
    words: "python script code task",
    icon: Code,
    node: task({
      name: "Python step",
      interpreter: "python3",
      command: 'import os\n\nwith open("result.txt", "w") as out:\n    out.write("hello\\n")\n',
      outputs: { result: { path: "result.txt", many: false, optional: false } },
    }),
  },
  {
    key: "scatter-files",
    name: "For each file",
    about: "Runs once per file of an input, in parallel",
    words: "scatter map loop parallel files each",
    icon: FileStack,
    node: task({
      name: "For each file",
      command: 'wc -l < "$ITEM" > count.txt\n',
      outputs: { count: { path: "count.txt", many: false, optional: false } },
    }),
    over: "files",
  },
  {
    key: "scatter-values",
    name: "For each value",
    about: "Runs once per value of a list",
    words: "scatter map loop parallel values sweep list each",
    icon: ListTree,
    node: task({
      name: "For each value",
      command: 'echo "value $ITEM" > value.txt\n',
      scatter: { over: "[1, 2, 3]" },
      outputs: { value: { path: "value.txt", many: false, optional: false } },
    }),
  },
  {
    key: "gather",
    name: "Gather",
    about: "Combines files from earlier steps",
    words: "gather reduce merge join collect combine",
    icon: Merge,
    node: task({
      name: "Gather",
      command: 'xargs cat < "$INPUT_parts_LIST" > all.txt\n',
      inputs: { parts: { optional: false } },
      outputs: { all: { path: "all.txt", many: false, optional: false } },
    }),
  },
  {
    key: "condition",
    name: "Conditional step",
    about: "Runs only if a condition is true",
    words: "condition if when branch skip",
    icon: GitBranch,
    node: task({ name: "Conditional step", command: "echo yes\n", when: "true" }),
  },
  {
    key: "note",
    name: "Note",
    about: "A comment on the canvas; never runs",
    words: "note comment sticky remark text",
    icon: StickyNote,
    node: { type: "note", text: "" } as unknown as Omit<GraphNode, "id">,
  },
];

export function findKinds(words: string): Kind[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return kinds.filter((kind) => {
    const text = `${kind.name} ${kind.about} ${kind.words}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

const gap = 24;

/** freePlace returns the point, or the nearest one below or beside it where a card lies on no other. */
export function freePlace(
  nodes: readonly Sized[],
  at: { x: number; y: number },
  height: number = card.head + card.row,
) {
  const [wide, high] = [card.width + gap, height + gap];
  const hit = (x: number, y: number) =>
    nodes.some(
      ({ position, width = 0, height: tall = 0 }) =>
        x < position.x + width + gap && position.x < x + wide && y < position.y + tall + gap && position.y < y + high,
    );
  for (let ring = 0; ring < 60; ring++) {
    for (let column = 0; column <= ring; column++) {
      const place = { x: at.x + column * wide, y: at.y + (ring - column) * high };
      if (!hit(place.x, place.y)) return place;
    }
  }
  return at;
}

/**
 * addStep adds a step with its head near a point, and selects it. The input that it runs
 * over comes with it, as one step of undo. It returns the key of the step.
 */
export function addStep(
  graph: GraphStore,
  { node, over }: Pick<Kind, "node" | "over">,
  at: { x: number; y: number },
  from: End | null = null,
): string | undefined {
  const { document } = graph;
  const { x, y } = freePlace(graph.now().nodes, { x: at.x - card.width / 2, y: at.y - card.head / 2 });
  const placed = { ...node, position: { x: Math.round(x), y: Math.round(y) } } as Kind["node"];
  const key = document.step(() => {
    const scatter = over && { scatter: { over: `inputs.${listInput(document, over)}` } };
    return document.put({ ...placed, ...scatter } as Kind["node"], from);
  });
  if (key) graph.select([key]);
  return key;
}

/** listInput finds the input of files with a name, or makes it, under another name if that is taken. */
function listInput(document: Document, wanted: string): string {
  const there = document.named("inputs", wanted) as { type?: string } | undefined;
  if (there?.type === "files") return wanted;
  const name = document.freeName("inputs", wanted);
  document.setNamed("inputs", name, { type: "files", required: true });
  return name;
}

/** add does so for a kind. */
export function add(graph: GraphStore, key: string, at: { x: number; y: number }): string | undefined {
  const kind = kinds.find((each) => each.key === key);
  return kind && addStep(graph, kind, at);
}
