import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { connectionsQuery } from "../../connections/queries.ts";
import { Field, Input, Select } from "../../ui/Field.tsx";
import { firstTarget, targetProblem } from "./outputTo.ts";

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
        Your team has no connection to a bucket yet. <Link to="/connections">Create one</Link> that can write to it.
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
          <option value="">Don't copy</option>
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
          hint="{runId} is replaced by the run ID. A manifest.json with checksums is written last."
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
