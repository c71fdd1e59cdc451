// Which of a run's files are shown on its page at once, and where files come from.
import type { Schemas } from "../../api/client.ts";
import { kindOf } from "../../files/preview.ts";
import { plural } from "../../ui/format.ts";

export type Output = Schemas["Output"];
export type Step = Pick<Schemas["RunNode"], "id" | "name">;

const most = { reports: 5, pictures: 24, texts: 6 };
const picture = 10 * 2 ** 20;
const small = 2 ** 20;

/** results are the first reports and pictures, and the first texts and tables that are small; left counts the other files. */
export function results(list: readonly Output[]): {
  reports: Output[];
  pictures: Output[];
  texts: Output[];
  left: number;
} {
  const final = list.filter((output) => output.result && output.size > 0);
  const reports = final.filter((output) => output.reportUrl !== null).slice(0, most.reports);
  const ofKind = (output: Output) => (output.directory ? "none" : kindOf(output.name, output.contentType));
  const pictures = final
    .filter((output) => ofKind(output) === "image" && output.size <= picture)
    .slice(0, most.pictures);
  const texts = final
    .filter((output) => ["text", "table", "markdown", "notebook"].includes(ofKind(output)) && output.size <= small)
    .slice(0, most.texts);
  return { reports, pictures, texts, left: list.length - reports.length - pictures.length - texts.length };
}

/** stepOf is the name of the step that wrote a file, with the number of the item: "Align [2]". */
export function stepOf({ nodeId, index }: Pick<Output, "nodeId" | "index">, steps: readonly Step[]): string {
  const name = steps.find((step) => step.id === nodeId)?.name || nodeId;
  return index === null ? name : `${name} [${index}]`;
}

/** originOf is the step that wrote a file and its output: "Align [2] · bam". */
export function originOf(output: Output, steps: readonly Step[]): string {
  return `${stepOf(output, steps)} · ${output.port}`;
}

/** countText is "2 files and 1 folder". */
export function countText(list: readonly Pick<Output, "directory">[]): string {
  const folders = list.filter((output) => output.directory).length;
  const files = list.length - folders;
  const parts = [...(files > 0 ? [plural(files, "file")] : []), ...(folders > 0 ? [plural(folders, "folder")] : [])];
  return parts.join(" and ");
}
