import { Download, FileTerminal } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useStore } from "zustand";
import { downloadOf, sizeOf } from "../../files/folder.ts";
import { Preview } from "../../files/Preview.tsx";
import { active, StatusPill } from "../../page/status.tsx";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { bytes, duration, exact, plural } from "../../ui/format.ts";
import { LogLines } from "../log/LogLines.tsx";
import type { RunNode } from "../queries.ts";
import { isReported } from "../queries.ts";
import type { RunStore } from "../runStore.ts";
import { itemCauseOf, named, tailOf } from "./failure.ts";
import { attemptText, type Item, itemText, took } from "./items.ts";
import { Placement } from "./Placement.tsx";
import { RetryButtons } from "./Retry.tsx";

const ReportedTask = lazy(() => import("./ReportedTask.tsx"));

interface ItemDialogProps {
  store: RunStore;
  node: RunNode;
  item: Item;
  onLog: (item: number) => void;
  onClose: () => void;
}

/** ItemDialog shows one item: its attempts, files and log, and a retry. */
export function ItemDialog({ store, node, item, onLog, onClose }: ItemDialogProps) {
  const status = useStore(store.state, (state) => state.run.status);
  const events = useStore(store.state, (state) => state.events);
  const tail = item.status === "failed" ? tailOf(itemCauseOf(events, node.id, item.index)) : [];
  const reported = isReported(store.run) || Boolean(node.launchedBy);
  return (
    <Dialog
      wide
      open
      onOpenChange={(open) => !open && onClose()}
      title={`Item ${item.index}: ${itemText(item)}`}
      description={node.name || node.id}
    >
      <div className="flex flex-wrap items-center gap-2">
        <StatusPill status={item.status} />
        {item.cached && <span className="text-sm text-muted">Reused from an earlier run</span>}
        <span className="flex-1" />
        {item.attempts.length > 0 && !item.cached && !reported && (
          <Button size="sm" icon={<FileTerminal className="size-4" aria-hidden />} onClick={() => onLog(item.index)}>
            View log
          </Button>
        )}
      </div>
      <ol className="mt-3 space-y-2 text-sm">
        {item.attempts.map((each) => {
          const lasted = took(each);
          return (
            <li key={each.attempt} className="rounded-lg border px-3 py-2">
              <p className="font-medium">{attemptText(each)}</p>
              {each.message && <p className="break-words whitespace-pre-line">{named(each.message, node)}</p>}
              <p className="text-[13px] text-muted">
                {exact(each.startedAt)}
                {lasted !== null && `, ${duration(lasted)}`}
                {each.peakMemBytes !== null && `, peak memory ${bytes(each.peakMemBytes)}`}
              </p>
              <Placement attempt={each} />
            </li>
          );
        })}
        {item.attempts.length === 0 && <li className="text-muted">Not started.</li>}
      </ol>
      {tail.length > 0 && (
        <>
          <h3 className="mt-3 mb-1">Last lines of the log</h3>
          <LogLines lines={tail} />
        </>
      )}
      {item.status === "failed" && !active(status) && !reported && (
        <div className="mt-3 rounded-lg bg-sunken px-3 py-2 text-sm">
          <div className="flex flex-wrap gap-2">
            <RetryButtons run={store.run} />
          </div>
        </div>
      )}
      {reported && item.attempts.length > 0 && (
        <Suspense fallback={null}>
          <ReportedTask run={store.run.id} task={item.index} attempts={item.attempts.map((each) => each.attempt)} />
        </Suspense>
      )}
      {item.outputs.length > 0 && <h3 className="mt-4 mb-1">{plural(item.outputs.length, "file")}</h3>}
      <ul className="space-y-2">
        {item.outputs.map((output, at) => (
          <ItemFile key={output.key} file={output} first={at === 0} />
        ))}
      </ul>
    </Dialog>
  );
}

/** ItemFile is a file of an item. Its preview is read when it is opened. */
function ItemFile({ file, first }: { file: Item["outputs"][number]; first: boolean }) {
  const [open, setOpen] = useState(first);
  return (
    <li>
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="flex cursor-pointer items-center gap-2 text-sm">
          <span className="min-w-0 flex-1 truncate font-medium">{file.name}</span>
          <span className="text-muted">{bytes(sizeOf(file))}</span>
          <a
            href={downloadOf(file).href}
            download={downloadOf(file).download}
            aria-label={`Download ${file.name}`}
            className={`${buttonClass("quiet", "sm")} w-8 px-0!`}
          >
            <Download className="size-4" aria-hidden />
          </a>
        </summary>
        {open && <Preview file={file} tall={false} />}
      </details>
    </li>
  );
}
