import { useQuery } from "@tanstack/react-query";
import { Download, PackageOpen } from "lucide-react";
import { useState } from "react";
import { downloadOf, sizeOf } from "../../files/folder.ts";
import { Answer } from "../../page/Answer.tsx";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Copy } from "../../ui/Copy.tsx";
import { Empty } from "../../ui/Empty.tsx";
import { Checkbox } from "../../ui/Field.tsx";
import { bytes } from "../../ui/format.ts";
import type { Run } from "../queries.ts";
import { outputsQuery } from "../queries.ts";
import { OutputsTable } from "./OutputsTable.tsx";
import { countText, type Output } from "./results.ts";

/** Outputs lists the files of a run, and offers to download all of them. */
export function Outputs({ run, node }: { run: Pick<Run, "id" | "status" | "nodes">; node: string | null }) {
  const [between, setBetween] = useState(false);
  // All files of a step are shown, also those that are not outputs of the run.
  const outputs = useQuery(outputsQuery(run.id, run.status, between || node !== null, node));
  const list = outputs.data ?? [];
  return (
    <>
      <div className="mb-2 flex flex-wrap items-center gap-2 text-sm text-muted">
        {list.length > 0 && `${countText(list)}, ${bytes(list.reduce((sum, output) => sum + sizeOf(output), 0))}`}
        {node === null && run.nodes.length > 1 && (
          <Checkbox
            label="Include intermediate files"
            checked={between}
            onChange={(event) => setBetween(event.target.checked)}
          />
        )}
        <span className="flex-1" />
        {list.length > 0 && <Downloads list={list} runId={node === null && !between ? run.id : null} />}
      </div>
      <Answer query={outputs}>
        {() =>
          list.length > 0 ? (
            <OutputsTable outputs={list} steps={run.nodes} />
          ) : (
            <Empty icon={<PackageOpen />} title={node ? "No outputs from this step" : "No outputs yet"}>
              {run.status === "completed"
                ? `The ${node ? "step" : "workflow"} declares none, or they were deleted.`
                : "Files appear here once they are stored and verified."}
            </Empty>
          )
        }
      </Answer>
    </>
  );
}

/** Downloads are the ways to get all files of the list. The server packs those of a whole run into one archive. */
function Downloads({ list, runId }: { list: Output[]; runId: string | null }) {
  const sums = list.flatMap((output) => (output.directory ? [] : `${output.sha256}  ${output.name}`)).join("\n");
  const icon = <Download className="size-4" aria-hidden />;
  return (
    <>
      {sums && <Copy text={`sha256sum -c <<'END'\n${sums}\nEND`} words="Copy checksum command" />}
      {runId === null ? (
        <Button size="sm" icon={icon} onClick={() => void downloadAll(list)}>
          Download all
        </Button>
      ) : (
        <>
          <a className={buttonClass("secondary", "sm")} href={`/api/runs/${runId}/crate`} download>
            Download as RO-Crate
          </a>
          <a className={buttonClass("secondary", "sm")} href={`/api/runs/${runId}/outputs.zip`} download>
            {icon} Download all
          </a>
        </>
      )}
    </>
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
