// A Jupyter notebook as what can be shown of it: texts and pictures, nothing
// that runs.

export interface Cell {
  kind: "markdown" | "code" | "raw";
  source: string;
  outputs: Shown[];
}

export type Shown = { kind: "text" | "error"; text: string } | { kind: "image"; src: string } | { kind: "left out" };

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** text joins what a notebook keeps as one string or as lines. */
function text(value: unknown): string {
  if (typeof value === "string") return value;
  return list(value)
    .filter((line) => typeof line === "string")
    .join("");
}

const ansi = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*[A-Za-z]`, "g");
const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp"];

function shown(output: unknown): Shown[] {
  if (!isObject(output)) return [];
  if (output.output_type === "stream") return [{ kind: "text", text: text(output.text).replaceAll(ansi, "") }];
  if (output.output_type === "error") {
    const lines = list(output.traceback).map(text).join("\n").replaceAll(ansi, "");
    return [{ kind: "error", text: lines || `${text(output.ename)}: ${text(output.evalue)}` }];
  }
  const data = isObject(output.data) ? output.data : {};
  const picture = pictures.find((type) => type in data);
  if (picture) return [{ kind: "image", src: `data:${picture};base64,${text(data[picture]).replaceAll(/\s/g, "")}` }];
  if ("text/plain" in data) return [{ kind: "text", text: text(data["text/plain"]) }];
  return Object.keys(data).length > 0 ? [{ kind: "left out" }] : [];
}

/** notebook reads the cells; what is no notebook throws. */
export function notebook(source: string): Cell[] {
  const whole: unknown = JSON.parse(source);
  if (!isObject(whole) || !Array.isArray(whole.cells)) throw new Error("this isn't a version 4 notebook");
  return whole.cells.filter(isObject).map((cell) => ({
    kind: cell.cell_type === "markdown" || cell.cell_type === "code" ? cell.cell_type : "raw",
    source: text(cell.source),
    outputs: list(cell.outputs).flatMap(shown),
  }));
}
