import { useQuery } from "@tanstack/react-query";
import { Download, Eye, PackageOpen } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "../../api/client.ts";
import { downloadOf, sizeOf } from "../../files/folder.ts";
import { Preview } from "../../files/Preview.tsx";
import { Answer } from "../../page/Answer.tsx";
import { Button, buttonClass, IconButton } from "../../ui/Button.tsx";
import { Copy } from "../../ui/Copy.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Empty } from "../../ui/Empty.tsx";
import { Checkbox } from "../../ui/Field.tsx";
import { bytes, plural } from "../../ui/format.ts";
import { useFirst } from "../../ui/rows.tsx";
import { Table, Td, Th } from "../../ui/Table.tsx";
import type { Run } from "../queries.ts";
import { outputsQuery } from "../queries.ts";
import { Report } from "./Report.tsx";

type Output = Schemas["Output"];

/** Outputs lists the files of a run, with previews and checksums. */
export function Outputs({ run, node }: { run: Pick<Run, "id" | "status" | "nodes">; node: string | null }) {
  const [shown, setShown] = useState<Output | null>(null);
  const [between, setBetween] = useState(false);
  // All files of a step are shown, also those that are not outputs of the run.
  const outputs = useQuery(outputsQuery(run.id, run.status, between || node !== null, node));
  const nameOf = (id: string) => run.nodes.find((each) => each.id === id)?.name || id;
  const origin = ({ nodeId, port, index }: Output) =>
    `${nameOf(nodeId)} · ${port}${index === null ? "" : ` [${index}]`}`;
  const list = outputs.data ?? [];
  const { shown: rows, more } = useFirst(list, 200);
  const withSteps = node === null && run.nodes.length > 1 && (
    <Checkbox
      label="Include intermediate files"
      checked={between}
      onChange={(event) => setBetween(event.target.checked)}
    />
  );
  return (
    <Answer query={outputs}>
      {() => {
        if (list.length === 0) {
          return (
            <>
              {withSteps}
              <Empty icon={<PackageOpen />} title={node ? "No outputs from this step" : "No outputs yet"}>
                {run.status === "completed"
                  ? `The ${node ? "step" : "workflow"} declares none, or they were deleted.`
                  : "Files appear here once they are stored and verified."}
              </Empty>
            </>
          );
        }
        const total = list.reduce((sum, output) => sum + sizeOf(output), 0);
        const single = list.filter((output) => !output.directory);
        const sums = single.map((output) => `${output.sha256}  ${output.name}`).join("\n");
        return (
          <>
            <div className="mb-2 flex flex-wrap items-center gap-2 text-sm text-muted">
              {plural(list.length, "file")}, {bytes(total)}
              {withSteps}
              <span className="flex-1" />
              {single.length > 0 && <Copy text={`sha256sum -c <<'END'\n${sums}\nEND`} words="Copy checksum command" />}
              {node === null && !between ? (
                <>
                  <a className={buttonClass("secondary", "sm")} href={`/api/runs/${run.id}/crate`} download>
                    Download as RO-Crate
                  </a>
                  <a className={buttonClass("secondary", "sm")} href={`/api/runs/${run.id}/outputs.zip`} download>
                    <Download className="size-4" aria-hidden />
                    Download all
                  </a>
                </>
              ) : (
                <Button
                  size="sm"
                  icon={<Download className="size-4" aria-hidden />}
                  onClick={() => void downloadAll(list)}
                >
                  Download all
                </Button>
              )}
            </div>
            <Table
              label="Outputs"
              head={
                <>
                  <Th>File</Th>
                  <Th className="max-md:hidden">From</Th>
                  <Th className="text-right">Size</Th>
                  <Th className="max-md:hidden">SHA-256</Th>
                  <Th>
                    <span className="sr-only">Actions</span>
                  </Th>
                </>
              }
            >
              {rows.map((output) => (
                <tr key={output.key}>
                  <Td>
                    <button type="button" className="font-medium hover:underline" onClick={() => setShown(output)}>
                      {output.name}
                    </button>
                    <span className="block text-[13px] text-muted md:hidden">{origin(output)}</span>
                  </Td>
                  <Td className="text-muted max-md:hidden">{origin(output)}</Td>
                  <Td className="tabular text-right whitespace-nowrap">{bytes(sizeOf(output))}</Td>
                  <Td className="whitespace-nowrap max-md:hidden">
                    <code className="text-muted" title={output.sha256}>
                      {output.sha256.slice(0, 12)}…
                    </code>{" "}
                    <Copy text={output.sha256} label={`Copy SHA-256 of ${output.name}`} />
                  </Td>
                  <Td className="text-right whitespace-nowrap">
                    <IconButton
                      size="sm"
                      label={`Preview ${output.name}`}
                      icon={<Eye className="size-4" aria-hidden />}
                      onClick={() => setShown(output)}
                    />
                    <a
                      href={downloadOf(output).href}
                      download={downloadOf(output).download}
                      aria-label={`Download ${output.name}`}
                      className={`${buttonClass("quiet", "sm")} w-8 px-0!`}
                    >
                      <Download className="size-4" aria-hidden />
                    </a>
                  </Td>
                </tr>
              ))}
            </Table>
            {more && <div className="mt-3 text-center">{more}</div>}
            {shown && (
              <Dialog
                wide
                open
                onOpenChange={(open) => !open && setShown(null)}
                title={shown.name}
                description={`${bytes(sizeOf(shown))}, from ${nameOf(shown.nodeId)}`}
              >
                {shown.reportUrl ? (
                  <Report title={shown.name} url={shown.reportUrl} className="h-[60vh]" />
                ) : (
                  <Preview file={shown} />
                )}
              </Dialog>
            )}
          </>
        );
      }}
    </Answer>
  );
}

/** downloadAll downloads one file after another, because browsers block several at once as pop-ups. */
async function downloadAll(list: Output[]): Promise<void> {
  for (const output of list) {
    const link = document.createElement("a");
    Object.assign(link, downloadOf(output));
    link.click();
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
}
