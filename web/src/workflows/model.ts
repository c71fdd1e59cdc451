// Rules of the workflows' pages, without a browser.
import { isRecord } from "../api/failure.ts";
import type { Definition, WorkflowRow } from "./queries.ts";

export type Sort = "updated" | "created" | "name";

/** inFolder tells whether something is in a folder or in one within it; the empty one is everywhere. */
export function inFolder(place: string, folder: string): boolean {
  return folder === "" || place === folder || place.startsWith(`${folder}/`);
}

/** foldersOf is the folders of workflows with those around them, by name. */
export function foldersOf(rows: WorkflowRow[]): string[] {
  const all = new Set<string>();
  for (const { folder } of rows) {
    const names = folder.split("/");
    for (let depth = 1; folder && depth <= names.length; depth++) all.add(names.slice(0, depth).join("/"));
  }
  return [...all].toSorted((a, b) => a.localeCompare(b));
}

/** pick is the rows that have all the words, in the wanted order, favorites first. */
export function pick(rows: WorkflowRow[], words: string, sort: Sort, favorites = new Set<string>()): WorkflowRow[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((row) => {
    const text =
      `${row.name} ${row.description} ${row.createdBy.name} ${row.tags.join(" ")} ${row.folder}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  const by: Record<Sort, (a: WorkflowRow, b: WorkflowRow) => number> = {
    name: (a, b) => a.name.localeCompare(b.name),
    created: (a, b) => b.createdAt.localeCompare(a.createdAt),
    updated: (a, b) => b.updatedAt.localeCompare(a.updatedAt),
  };
  const first = (row: WorkflowRow) => (favorites.has(row.id) ? 0 : 1);
  return found.toSorted((a, b) => first(a) - first(b) || by[sort](a, b));
}

export interface Import {
  name: string;
  description: string;
  license: string;
  definition: Definition;
}

/** readImport takes an exported workflow, or a bare definition, from a file's text; of YAML, the reader is given. */
export function readImport(text: string, filename: string, parse: (text: string) => unknown = JSON.parse): Import {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : "";
    throw new Error(`${filename} couldn't be read: ${why}`);
  }
  if (!isRecord(value)) throw new Error(`${filename} contains no workflow`);
  const definition = isRecord(value.definition) ? value.definition : value;
  if (definition.version !== 1) throw new Error(`${filename} contains no version 1 definition`);
  const plain = filename.replace(/(\.workflow)?\.(json|ya?ml)$/i, "");
  return {
    name: typeof value.name === "string" && value.name.trim() ? value.name : plain || "Imported workflow",
    description: typeof value.description === "string" ? value.description : "",
    license: typeof value.license === "string" ? value.license : "",
    definition: definition as Definition,
  };
}

/** needsFiles tells whether a run must be given files. */
export function needsFiles(definition: Definition): boolean {
  return Object.values(definition.inputs ?? {}).some((input) => input.required !== false);
}

/** needsValues tells whether a run must be given values. */
export function needsValues(definition: Definition): boolean {
  return Object.values(definition.parameters ?? {}).some((parameter) => parameter.default === undefined);
}

export interface Box {
  id: string;
  label: string;
  x: number;
  y: number;
}

/** boxes places a definition's nodes for a small picture: where they are, or in columns by their order. */
export function boxes(definition: Definition): Box[] {
  const nodes = (definition.nodes ?? []).filter((node) => node.type !== "note");
  const placed = nodes.every((node) => node.position?.x !== undefined && node.position.y !== undefined);
  const spread = new Set(nodes.map((node) => `${node.position?.x},${node.position?.y}`)).size === nodes.length;
  if (placed && spread) {
    return compact(
      nodes.map((node) => ({
        id: node.id,
        label: node.name || node.id,
        x: node.position?.x ?? 0,
        y: node.position?.y ?? 0,
      })),
    );
  }
  const depth = new Map(nodes.map((node) => [node.id, 0]));
  const edges = (definition.edges ?? []).filter((edge) => depth.has(edge.source) && depth.has(edge.target));
  // As many rounds as there are nodes is enough for any order, and ends on a cycle.
  for (let round = 0; round < nodes.length; round++) {
    let moved = false;
    for (const edge of edges) {
      const least = (depth.get(edge.source) ?? 0) + 1;
      if (least <= nodes.length && (depth.get(edge.target) ?? 0) < least) {
        depth.set(edge.target, least);
        moved = true;
      }
    }
    if (!moved) break;
  }
  const used = new Map<number, number>();
  return compact(
    nodes.map((node) => {
      const column = depth.get(node.id) ?? 0;
      const row = used.get(column) ?? 0;
      used.set(column, row + 1);
      return { id: node.id, label: node.name || node.id, x: column, y: row };
    }),
  );
}

/** compact brings boxes as close as a small picture needs them; a long row becomes a column. */
function compact(list: Box[]): Box[] {
  const ranks = (values: number[]) => {
    const sorted = [...new Set(values)].toSorted((a, b) => a - b);
    return new Map(sorted.map((value, at) => [value, at]));
  };
  const columns = ranks(list.map((box) => box.x));
  const rows = ranks(list.map((box) => box.y));
  const upright = columns.size > 3 && rows.size <= 2;
  return list.map((box) => {
    const [column, row] = [columns.get(box.x) ?? 0, rows.get(box.y) ?? 0];
    return { ...box, x: (upright ? row : column) * 250, y: (upright ? column : row) * 90 };
  });
}
