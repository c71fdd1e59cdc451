import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client.ts";
import { bytes, plural } from "../../ui/format.ts";
import { Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { runQuery } from "../queries.ts";

const tones = { waiting: "info", copying: "info", completed: "ok", failed: "danger", skipped: "info" } as const;

/** CopyState shows the progress of copying a run's outputs to a bucket. */
export function CopyState({ runId, first }: { runId: string; first: Schemas["OutputCopy"] }) {
  const run = useQuery({
    ...runQuery(runId),
    refetchInterval: (query) => (query.state.data?.outputTo?.finishedAt ? false : 3000),
  });
  const copy = run.data?.outputTo ?? first;
  const titles: Record<string, string> = {
    waiting: "Outputs are copied when the run completes",
    copying: copy.nextAttemptAt ? "Copying failed and will be retried" : "Copying outputs",
    completed: `Copied: ${plural(copy.copiedFiles, "file")}, ${bytes(copy.copiedBytes)}`,
    failed: "Couldn't copy outputs",
    skipped: "Not copied",
  };
  return (
    <Notice
      tone={copy.nextAttemptAt ? "warn" : (tones[copy.state as keyof typeof tones] ?? "info")}
      title={titles[copy.state] ?? copy.state}
    >
      <p className="break-all">
        <code>{copy.url}</code>
      </p>
      {copy.message && <p>{copy.message}</p>}
      {copy.nextAttemptAt && (
        <p>
          Next attempt: <Time at={copy.nextAttemptAt} />
        </p>
      )}
      {copy.state === "copying" && copy.bytes > 0 && (
        <p>
          <progress className="w-full" max={copy.bytes} value={copy.copiedBytes} aria-label="Copied" />
          {bytes(copy.copiedBytes)} of {bytes(copy.bytes)}
        </p>
      )}
      {copy.state === "failed" && <p>Retry the run to copy again. Completed steps are reused.</p>}
    </Notice>
  );
}
