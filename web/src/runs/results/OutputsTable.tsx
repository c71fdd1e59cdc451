import { Download, Eye } from "lucide-react";
import { useState } from "react";
import { downloadOf, sizeOf } from "../../files/folder.ts";
import { Preview } from "../../files/Preview.tsx";
import { buttonClass, IconButton } from "../../ui/Button.tsx";
import { Copy } from "../../ui/Copy.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { bytes } from "../../ui/format.ts";
import { useFirst } from "../../ui/rows.tsx";
import { Table, Td, Th } from "../../ui/Table.tsx";
import { Report } from "./Report.tsx";
import { type Output, originOf, type Step } from "./results.ts";

/** OutputsTable lists files of a run, each with its step, checksum, preview and download. */
export function OutputsTable({ outputs, steps }: { outputs: readonly Output[]; steps: readonly Step[] }) {
  const [previewed, setPreviewed] = useState<Output | null>(null);
  const { shown, more } = useFirst(outputs, 200);
  return (
    <>
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
        {shown.map((output) => (
          <OutputRow
            key={output.key}
            output={output}
            origin={originOf(output, steps)}
            onPreview={() => setPreviewed(output)}
          />
        ))}
      </Table>
      {more && <div className="mt-3 text-center">{more}</div>}
      {previewed && (
        <Dialog
          wide
          open
          onOpenChange={(open) => !open && setPreviewed(null)}
          title={previewed.name}
          description={`${bytes(sizeOf(previewed))}, from ${originOf(previewed, steps)}`}
        >
          {previewed.reportUrl ? (
            <Report title={previewed.name} url={previewed.reportUrl} className="h-[60vh]" />
          ) : (
            <Preview file={previewed} />
          )}
        </Dialog>
      )}
    </>
  );
}

function OutputRow({ output, origin, onPreview }: { output: Output; origin: string; onPreview: () => void }) {
  return (
    <tr>
      <Td className="break-words">
        <button type="button" className="text-left font-medium hover:underline" onClick={onPreview}>
          {output.name}
        </button>
        <span className="block text-[13px] text-muted md:hidden">{origin}</span>
      </Td>
      <Td className="text-muted max-md:hidden">{origin}</Td>
      <Td className="tabular text-right whitespace-nowrap">{bytes(sizeOf(output))}</Td>
      <Td className="whitespace-nowrap max-md:hidden">
        <span className="inline-flex items-center gap-1">
          <code className="text-muted" title={output.sha256}>
            {output.sha256.slice(0, 12)}…
          </code>
          <Copy text={output.sha256} label={`Copy SHA-256 of ${output.name}`} />
        </span>
      </Td>
      <Td className="text-right whitespace-nowrap">
        <IconButton
          size="sm"
          label={`Preview ${output.name}`}
          icon={<Eye className="size-4" aria-hidden />}
          onClick={onPreview}
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
  );
}
