import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client.ts";
import { connectionsQuery } from "../connections/queries.ts";
import { Field, Input, Select } from "../ui/Field.tsx";
import { bytes, plural } from "../ui/format.ts";
import { Notice } from "../ui/Notice.tsx";
import { Time } from "../ui/Time.tsx";
import { firstTarget, targetProblem } from "./outputTo.ts";
import { runQuery } from "./queries.ts";

type Target = Schemas["OutputTarget"];

interface OutputToProps {
  target: Target | null;
  onChange: (target: Target | null) => void;
  tried: boolean;
}

/** OutputTo chooses a bucket that the outputs of a run are copied to as well. */
export function OutputTo({ target, onChange, tried }: OutputToProps) {
  const connections = useQuery(connectionsQuery);
  const buckets = (connections.data ?? []).filter((each) => each.type === "s3");
  if (connections.data && buckets.length === 0) {
    return (
      <p className="text-muted">
        The team has no connection to a bucket yet. <Link to="/connections">Make one</Link> that may write there.
      </p>
    );
  }
  const chosen = buckets.find((each) => each.id === target?.connection);
  const problem = target && chosen ? targetProblem(target.url, chosen) : null;
  return (
    <div className="space-y-3">
      <Field label="Connection">
        <Select
          value={target?.connection ?? ""}
          onChange={(event) => {
            const next = buckets.find((each) => each.id === event.target.value);
            onChange(next ? { connection: next.id, url: firstTarget(next) } : null);
          }}
        >
          <option value="">Nowhere else</option>
          {buckets.map((each) => (
            <option key={each.id} value={each.id}>
              {each.name}
            </option>
          ))}
        </Select>
      </Field>
      {target && (
        <Field
          label="Folder"
          hint="{runId} stands for the id of the run. A manifest.json with hashes comes last."
          error={tried && problem ? problem : undefined}
        >
          <Input
            className="font-mono"
            spellCheck={false}
            value={target.url}
            onChange={(event) => onChange({ ...target, url: event.target.value.trim() })}
          />
        </Field>
      )}
    </div>
  );
}

const tones = { waiting: "info", copying: "info", completed: "ok", failed: "danger", skipped: "info" } as const;

/** CopyState is how far the copy of a run's outputs is. */
export function CopyState({ runId, first }: { runId: string; first: Schemas["OutputCopy"] }) {
  const run = useQuery({
    ...runQuery(runId),
    refetchInterval: (query) => (query.state.data?.outputTo?.finishedAt ? false : 3000),
  });
  const copy = run.data?.outputTo ?? first;
  const titles: Record<string, string> = {
    waiting: "Will be copied when the run has completed",
    copying: copy.nextAttemptAt ? "Copying failed and will be tried again" : "Being copied",
    completed: `Copied: ${plural(copy.copiedFiles, "file")}, ${bytes(copy.copiedBytes)}`,
    failed: "Could not be copied",
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
      {copy.state === "failed" && <p>Retry the run to copy again: nothing is computed a second time.</p>}
    </Notice>
  );
}
