// Which of a run's files are shown on its page at once.
import type { Schemas } from "../../api/client.ts";
import { kindOf } from "../../files/preview.ts";

export type Output = Schemas["Output"];

const most = { reports: 5, pictures: 24, texts: 6 };
const picture = 10 * 2 ** 20;
const small = 2 ** 20;

/** results are the first reports and pictures, and the first texts and tables that are small; left are the others. */
export function results(list: readonly Output[]): {
  reports: Output[];
  pictures: Output[];
  texts: Output[];
  left: number;
} {
  const reports = list.filter((output) => output.reportUrl !== null && output.size > 0).slice(0, most.reports);
  const ofKind = (output: Output) => (output.directory ? "none" : kindOf(output.name, output.contentType));
  const pictures = list
    .filter((output) => ofKind(output) === "image" && output.size > 0 && output.size <= picture)
    .slice(0, most.pictures);
  const texts = list
    .filter(
      (output) =>
        ["text", "table", "markdown", "notebook"].includes(ofKind(output)) && output.size > 0 && output.size <= small,
    )
    .slice(0, most.texts);
  return { reports, pictures, texts, left: list.length - reports.length - pictures.length - texts.length };
}

/** finalOutputs are those of the outputs that are results of their run. */
export function finalOutputs(list: readonly Output[]): Output[] {
  return list.filter((output) => output.result);
}
