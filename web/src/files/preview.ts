// What can be shown of a file, decided by its name and type.
import type { Schemas } from "../api/client.ts";

/** Previewed is what a preview needs of a file or an output. */
export interface Previewed {
  name: string;
  url: string;
  size: number;
  contentType: string;
  directory?: Schemas["Directory"];
}

export type Kind = "text" | "table" | "markdown" | "notebook" | "image" | "pdf" | "html" | "none";

// Safe as pictures: in an <img>, an SVG neither runs scripts nor loads anything.
const images = /\.(png|jpe?g|gif|webp|avif|bmp|svg)$/i;
const tables = /\.(csv|tsv|tab|bed|gtf|gff3?|vcf|sam|maf)$/i;
const texts =
  /\.(txt|log|json|jsonl|ndjson|ya?ml|xml|toml|ini|fa|fasta|fna|faa|fq|fastq|nwk|pdb|tex|bib|sql|out|err|aln|paf|wig|bedgraph)$/i;

/** kindOf is how a file is shown; one that is packed by gzip as what is in it, as far as text goes. */
export function kindOf(name: string, contentType: string): Kind {
  if (packed(name)) {
    const inner = kindOf(name.replace(/\.(gz|bgz)$/i, ""), "");
    return inner === "table" || inner === "markdown" ? inner : inner === "image" || inner === "pdf" ? "none" : "text";
  }
  const type = contentType.split(";")[0]?.trim().toLowerCase() ?? "";
  if (images.test(name) || /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/.test(type)) return "image";
  if (/\.html?$/i.test(name) || type === "text/html") return "html";
  if (/\.pdf$/i.test(name) || type === "application/pdf") return "pdf";
  if (/\.ipynb$/i.test(name)) return "notebook";
  if (/\.(md|markdown)$/i.test(name) || type === "text/markdown") return "markdown";
  if (tables.test(name) || type === "text/csv" || type === "text/tab-separated-values") return "table";
  if (texts.test(name) || type.startsWith("text/") || type === "application/json") return "text";
  return "none";
}

/** packed tells whether a file is packed by gzip. An archive of files is not text. */
export const packed = (name: string): boolean => /\.(gz|bgz)$/i.test(name) && !/\.(tar\.gz|bam\.gz)$/i.test(name);

/** unpack is the beginning of what gzip packed, from the beginning of the file: where that breaks off, so does the text. */
export async function unpack(head: Uint8Array<ArrayBuffer>, most: number): Promise<Uint8Array> {
  const reader = new Blob([head]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const out = new Uint8Array(most);
  let size = 0;
  try {
    while (size < most) {
      const { done, value } = await reader.read();
      if (done) break;
      const part = value.subarray(0, most - size);
      out.set(part, size);
      size += part.length;
    }
  } catch (error) {
    if (size === 0) throw new Error("the file isn't gzip-compressed, or is damaged", { cause: error });
  }
  void reader.cancel().catch(() => {});
  return out.subarray(0, size);
}

/** rows reads comma- or tab-separated text; a last line that was cut off is left out. */
export function rows(text: string, whole: boolean, most = 200): string[][] {
  const tab = firstLine(text).includes("\t");
  const out: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  for (let at = 0; at < text.length && out.length < most; at++) {
    const char = text[at];
    if (quoted) {
      if (char !== '"') cell += char;
      else if (text[at + 1] === '"') {
        cell += '"';
        at++;
      } else quoted = false;
    } else if (char === '"' && !tab && cell === "") quoted = true;
    else if (char === (tab ? "\t" : ",")) {
      row.push(cell);
      cell = "";
    } else if (char === "\n") {
      row.push(cell.replace(/\r$/, ""));
      out.push(row);
      row = [];
      cell = "";
    } else cell += char;
  }
  if (whole && out.length < most && (cell || row.length > 0)) out.push([...row, cell]);
  return out;
}

function firstLine(text: string): string {
  return text.slice(0, text.indexOf("\n") + 1 || text.length);
}

/** withHead names the columns of a table: by its first row or, where that has numbers other than years, by their places. */
export function withHead(cells: string[][]): { head: string[]; body: string[][] } {
  const [first = [], ...rest] = cells;
  const data = first.some(
    (cell) => cell.trim() !== "" && !Number.isNaN(Number(cell)) && !/^(1[89]|20)\d\d$/.test(cell),
  );
  return data ? { head: first.map((_, at) => `Column ${at + 1}`), body: cells } : { head: first, body: rest };
}

/** sorted puts rows in the order of a column: numbers by value, texts by letters, empty cells last. */
export function sorted(list: readonly string[][], column: number, down: boolean): string[][] {
  const value = (row: string[]) => row[column]?.trim() ?? "";
  const number = (text: string) => (text === "" ? Number.NaN : Number(text));
  return list.toSorted((a, b) => {
    const [x, y] = [value(a), value(b)];
    if ((x === "") !== (y === "")) return x === "" ? 1 : -1;
    const [m, n] = [number(x), number(y)];
    const numbers = Number(Number.isNaN(m)) - Number(Number.isNaN(n));
    const order = Number.isNaN(m) || Number.isNaN(n) ? numbers || x.localeCompare(y) : m - n;
    return down ? -order : order;
  });
}
