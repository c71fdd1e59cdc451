import { useState } from "react";
import type { GraphNode } from "../definition/model.ts";
import { Choice, Field } from "../ui/Field.tsx";
import { DraftArea, DraftInput } from "./fields.tsx";
import { Marked } from "./Marked.tsx";
import { readChannels, readPackages, wrongChannel, wrongConda, wrongLock, wrongPackage } from "./packages.ts";

interface NodePackagesProps {
  node: GraphNode;
  locked: boolean;
  set: (key: string, value: unknown) => void;
}

type Environment = NonNullable<GraphNode["environment"]>;

const refuseVersion = (text: string) =>
  text === "" || /^3\.([89]|[1-9][0-9])$/.test(text) ? null : "Enter a version such as 3.12.";

const kinds = { pip: "Python (pip)", conda: "Conda", lock: "Lock file" };

/** kindOf returns what an environment is made of. */
function kindOf(environment: Environment | undefined): keyof typeof kinds | undefined {
  if (environment?.lock) return "lock";
  if (environment?.conda?.length) return "conda";
  return environment?.pip?.length ? "pip" : undefined;
}

/** NodePackages names the packages that are installed for a step. */
export function NodePackages({ node, locked, set }: NodePackagesProps) {
  const environment = node.environment;
  const [chosen, choose] = useState<keyof typeof kinds>("pip");
  if (node.image && !environment) return null; // the image has its own
  const kind = kindOf(environment) ?? chosen;
  const keep = (next: Environment) => set("environment", next.python || kindOf(next) ? next : undefined);
  const Fields = { pip: PipFields, conda: CondaFields, lock: LockFields }[kind];
  return (
    <section>
      <Marked field="environment" only className="space-y-2">
        {!kindOf(environment) && (
          <Field label="Packages from">
            <Choice
              disabled={locked}
              options={kinds}
              value={kind}
              onChange={(next) => {
                choose(next);
                if (environment) set("environment", undefined);
              }}
            />
          </Field>
        )}
        <Fields {...{ environment, locked, keep }} />
      </Marked>
    </section>
  );
}

interface FieldsProps {
  environment: Environment | undefined;
  locked: boolean;
  keep: (next: Environment) => void;
}

const hint = "One per line. Installed once, then the same in every run.";

function PipFields({ environment, locked, keep }: FieldsProps) {
  const python = environment?.python ?? "";
  const pip = environment?.pip ?? [];
  return (
    <>
      <Marked field="environment.pip">
        <Field label="Python packages" optional hint={hint}>
          <DraftArea
            rows={3}
            disabled={locked}
            placeholder={"pandas==2.2.*\nmatplotlib"}
            value={pip.join("\n")}
            refuse={wrongPackage}
            onKeep={(text) => keep({ ...(python && { python }), pip: readPackages(text) })}
          />
        </Field>
      </Marked>
      {environment && (
        <Marked field="environment.python">
          <Field label="Python version" optional>
            <DraftInput
              disabled={locked}
              placeholder="The machine's version"
              value={python}
              refuse={refuseVersion}
              onKeep={(version) => keep({ ...(version && { python: version }), pip })}
            />
          </Field>
        </Marked>
      )}
    </>
  );
}

function CondaFields({ environment, locked, keep }: FieldsProps) {
  const conda = environment?.conda ?? [];
  const channels = environment?.channels ?? [];
  return (
    <>
      <Marked field="environment.conda">
        <Field label="Conda packages" optional hint={hint}>
          <DraftArea
            rows={3}
            disabled={locked}
            placeholder={"samtools=1.20\npython=3.12"}
            value={conda.join("\n")}
            refuse={wrongConda}
            onKeep={(text) => keep({ conda: readPackages(text), ...(channels.length > 0 && { channels }) })}
          />
        </Field>
      </Marked>
      {conda.length > 0 && (
        <Marked field="environment.channels">
          <Field label="Channels" optional hint="Channels are searched in this order.">
            <DraftInput
              disabled={locked}
              placeholder="All channels this server allows"
              value={channels.join(", ")}
              refuse={wrongChannel}
              onKeep={(text) => {
                const names = readChannels(text);
                keep({ conda, ...(names.length > 0 && { channels: names }) });
              }}
            />
          </Field>
        </Marked>
      )}
    </>
  );
}

function LockFields({ environment, locked, keep }: FieldsProps) {
  return (
    <Marked field="environment.lock">
      <Field
        label="Lock"
        optional
        hint="The exact versions an earlier run installed. Clear this to resolve versions again."
      >
        <DraftArea
          rows={6}
          className="font-mono"
          spellCheck={false}
          disabled={locked}
          placeholder={"# python 3.12\npandas==2.2.3 --hash=sha256:…"}
          value={environment?.lock ?? ""}
          refuse={wrongLock}
          onKeep={(text) => keep(text.trim() === "" ? {} : { lock: `${text.trim()}\n` })}
        />
      </Field>
    </Marked>
  );
}
