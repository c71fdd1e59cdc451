// What can be shown of a file, decided by its name and type.

export type Kind = "text" | "table" | "image" | "html" | "none";

const images = /\.(png|jpe?g|gif|webp|avif|bmp)$/i;
const tables = /\.(csv|tsv|tab|bed|gtf|gff3?|vcf|sam)$/i;
const texts = /\.(txt|log|md|json|ya?ml|xml|toml|ini|fa|fasta|fna|faa|fq|fastq|nwk|pdb|svg|tex|bib|sql|out|err)$/i;

export function kindOf(name: string, contentType: string): Kind {
  const type = contentType.split(";")[0]?.trim().toLowerCase() ?? "";
  if (images.test(name) || /^image\/(png|jpeg|gif|webp|avif|bmp)$/.test(type)) return "image";
  if (/\.html?$/i.test(name) || type === "text/html") return "html";
  if (tables.test(name) || type === "text/csv" || type === "text/tab-separated-values") return "table";
  if (texts.test(name) || type.startsWith("text/") || type === "application/json") return "text";
  return "none";
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
