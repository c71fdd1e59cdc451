import type { GraphNode } from "../graph/model.ts";
import { Button } from "../ui/Button.tsx";
import { Field } from "../ui/Field.tsx";
import { DraftArea, DraftInput } from "./fields.tsx";
import { readPackages, wrongPackage } from "./packages.ts";

interface NodePackagesProps {
  node: GraphNode;
  locked: boolean;
  set: (key: string, value: unknown) => void;
}

const refuseVersion = (text: string) =>
  text === "" || /^3\.([89]|[1-9][0-9])$/.test(text) ? null : "A version such as 3.12.";

/** NodePackages names the Python packages that are installed for a step. */
export function NodePackages({ node, locked, set }: NodePackagesProps) {
  const environment = node.environment;
  const keep = (change: { python?: string; pip?: string[] }) => {
    const { python = environment?.python ?? "", pip = environment?.pip ?? [] } = change;
    set("environment", pip.length === 0 && !python ? undefined : { ...(python && { python }), pip });
  };
  if (node.image && !environment) return null; // the image has its own
  if (environment?.lock)
    return (
      <section className="space-y-2">
        <h3 className="text-sm">Python packages</h3>
        <p className="text-[13px] text-muted">Exactly those of a lock, which was chosen in an earlier run.</p>
        {!locked && (
          <Button size="sm" onClick={() => set("environment", undefined)}>
            Remove the lock
          </Button>
        )}
      </section>
    );
  return (
    <section className="space-y-2">
      <Field label="Python packages" optional hint="One per line. Installed once, then the same in every run.">
        <DraftArea
          rows={3}
          disabled={locked}
          placeholder={"pandas==2.2.*\nmatplotlib"}
          value={(environment?.pip ?? []).join("\n")}
          refuse={wrongPackage}
          onKeep={(text) => keep({ pip: readPackages(text) })}
        />
      </Field>
      {environment && (
        <Field label="Python version" optional>
          <DraftInput
            disabled={locked}
            placeholder="The machine's own"
            value={environment.python ?? ""}
            refuse={refuseVersion}
            onKeep={(python) => keep({ python })}
          />
        </Field>
      )}
    </section>
  );
}
