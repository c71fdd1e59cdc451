import { ChevronDown, ChevronUp, CircleCheck, CircleX, Clock, LoaderCircle, RotateCcw, X } from "lucide-react";
import { useEffect, useState } from "react";
import { useTeam } from "../api/team.ts";
import { meQuery } from "../identity/queries.ts";
import { Button, IconButton } from "../ui/Button.tsx";
import { bytes, duration, plural } from "../ui/format.ts";
import { Progress } from "../ui/Progress.tsx";
import { useFirst } from "../ui/rows.tsx";
import { inOrder } from "./queue.ts";
import { type TeamUpload, type TeamUploads, uploads, useUploads } from "./uploads.ts";

/** UploadTray shows what is being uploaded, on every page. */
export default function UploadTray() {
  const totals = useUploads();
  const [open, setOpen] = useState(true);
  const here = useTeam();
  const { shown, more } = useFirst(inOrder(totals.uploads), 100);
  const named = totals.uploads.some((upload) => upload.team !== here);
  useLeaveWarning(totals.going > 0);
  return (
    <>
      {totals.uploads.length > 0 && (
        <section
          aria-label="Uploads"
          className="fixed right-3 bottom-3 z-30 w-[min(24rem,calc(100vw-1.5rem))] overflow-hidden rounded-xl border bg-raised shadow-lift print:hidden"
        >
          <header className="flex items-center gap-2 py-1.5 pr-1.5 pl-3.5">
            <div className="min-w-0 flex-1 text-sm">
              <p role="status" className="font-medium">
                {heading(totals)}
              </p>
              {totals.going > 0 && <p className="tabular text-[13px] text-muted">{pace(totals)}</p>}
            </div>
            <IconButton
              size="sm"
              label={open ? "Collapse list" : "Expand list"}
              icon={
                open ? <ChevronDown className="size-4" aria-hidden /> : <ChevronUp className="size-4" aria-hidden />
              }
              onClick={() => setOpen(!open)}
            />
            <IconButton
              size="sm"
              label={totals.going > 0 ? "Cancel all uploads" : "Close"}
              icon={<X className="size-4" aria-hidden />}
              onClick={() => (totals.going > 0 ? uploads.cancelAll() : uploads.clear())}
            />
          </header>
          {totals.going > 0 && (
            <Progress
              className="rounded-none"
              value={totals.size ? (totals.sent / totals.size) * 100 : null}
              label="All uploads"
            />
          )}
          {open && (
            <ul className="max-h-64 overflow-y-auto border-t">
              {shown.map((upload) => (
                <Row key={upload.id} upload={upload} named={named} />
              ))}
              {more && <li className="px-3.5 py-2">{more}</li>}
            </ul>
          )}
        </section>
      )}
    </>
  );
}

function heading({ uploads: list, going }: TeamUploads): string {
  if (going > 0) return `Uploading ${plural(going, "file")}`;
  const done = list.filter((each) => each.state === "done").length;
  const failed = list.filter((each) => each.state === "failed").length;
  return failed > 0 ? `${plural(done, "file")} uploaded, ${failed} failed` : `${plural(done, "file")} uploaded`;
}

function pace({ sent, size, bytesPerSecond }: TeamUploads): string {
  const parts = [`${bytes(sent)} of ${bytes(size)}`];
  if (bytesPerSecond > 0)
    parts.push(`${bytes(bytesPerSecond)}/s`, `${duration(((size - sent) / bytesPerSecond) * 1000)} left`);
  return parts.join(" · ");
}

const icons = {
  waiting: <Clock className="size-4 text-muted" aria-label="Waiting" />,
  sending: <LoaderCircle className="size-4 animate-spin text-info" aria-label="Uploading" />,
  done: <CircleCheck className="size-4 text-ok" aria-label="Uploaded" />,
  failed: <CircleX className="size-4 text-danger" aria-label="Failed" />,
  cancelled: <X className="size-4 text-muted" aria-label="Cancelled" />,
};

function Row({ upload, named }: { upload: TeamUpload; named: boolean }) {
  const going = upload.state === "waiting" || upload.state === "sending";
  return (
    <li className="flex items-center gap-2.5 border-b px-3.5 py-2 text-sm last:border-b-0">
      {icons[upload.state]}
      <div className="min-w-0 flex-1">
        <p className="truncate">{upload.file.name}</p>
        {named && (
          <p className="truncate text-[13px] text-muted">
            Team: {upload.team.getQueryData(meQuery.queryKey)?.team.name ?? upload.team.team}
          </p>
        )}
        {upload.state === "sending" && (
          <Progress
            className="mt-1"
            value={upload.file.size ? (upload.sent / upload.file.size) * 100 : null}
            label={`Upload of ${upload.file.name}`}
          />
        )}
        {upload.error && <p className="text-[13px] text-danger">{upload.error}</p>}
        {(upload.state === "waiting" || upload.state === "done") && (
          <p className="text-[13px] text-muted">{bytes(upload.file.size)}</p>
        )}
      </div>
      {going && (
        <IconButton
          size="sm"
          label={`Cancel ${upload.file.name}`}
          icon={<X className="size-4" aria-hidden />}
          onClick={() => uploads.cancel(upload.id)}
        />
      )}
      {!going && upload.state !== "done" && upload.retryable && (
        <Button size="sm" icon={<RotateCcw className="size-4" aria-hidden />} onClick={() => uploads.retry(upload.id)}>
          Retry
        </Button>
      )}
    </li>
  );
}

function useLeaveWarning(going: boolean): void {
  useEffect(() => {
    if (!going) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [going]);
}
