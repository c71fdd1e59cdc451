import { useState } from "react";
import type { GraphNode } from "../graph/model.ts";
import { Choice, Field } from "../ui/Field.tsx";
import { useProblemsOf } from "./context.ts";
import { DraftArea, DraftInput } from "./fields.tsx";
import {
  problemsAt,
  readChannels,
  readPackages,
  wrongChannel,
  wrongConda,
  wrongLock,
  wrongPackage,
} from "./packages.ts";

interface NodePackagesProps {
  node: GraphNode;
  locked: boolean;
  set: (key: string, value: unknown) => void;
}

type Environment = NonNullable<GraphNode["environment"]>;

const refuseVersion = (text: string) =>
  text === "" || /^3\.([89]|[1-9][0-9])$/.test(text) ? null : "A version such as 3.12.";

const kinds = { pip: "Python (pip)", conda: "Conda", lock: "A lock" };

/** kindOf is what an environment is made of. */
function kindOf(environment: Environment | undefined): keyof typeof kinds | undefined {
  if (environment?.lock) return "lock";
  if (environment?.conda?.length) return "conda";
  return environment?.pip?.length ? "pip" : undefined;
}

/** NodePackages names the packages that are installed for a step. */
export function NodePackages({ node, locked, set }: NodePackagesProps) {
  const environment = node.environment;
  const [chosen, choose] = useState<keyof typeof kinds>("pip");
  const problems = useProblemsOf(node.id);
  if (node.image && !environment) return null; // the image has its own
  const kind = kindOf(environment) ?? chosen;
  const keep = (next: Environment) => set("environment", next.python || kindOf(next) ? next : undefined);
  const Fields = { pip: PipFields, conda: CondaFields, lock: LockFields }[kind];
  return (
    <section className="space-y-2">
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
      <Fields {...{ environment, locked, keep, problems }} />
    </section>
  );
}

interface FieldsProps {
  environment: Environment | undefined;
  locked: boolean;
  keep: (next: Environment) => void;
  problems: { path: string; message: string }[];
}

const hint = "One per line. Installed once, then the same in every run.";

function PipFields({ environment, locked, keep, problems }: FieldsProps) {
  const python = environment?.python ?? "";
  const pip = environment?.pip ?? [];
  return (
    <>
      <Field label="Python packages" optional hint={hint} error={problemsAt(problems, "pip", !environment?.python)}>
        <DraftArea
          rows={3}
          disabled={locked}
          placeholder={"pandas==2.2.*\nmatplotlib"}
          value={pip.join("\n")}
          refuse={wrongPackage}
          onKeep={(text) => keep({ ...(python && { python }), pip: readPackages(text) })}
        />
      </Field>
      {environment && (
        <Field label="Python version" optional error={problemsAt(problems, "python", false)}>
          <DraftInput
            disabled={locked}
            placeholder="The machine's own"
            value={python}
            refuse={refuseVersion}
            onKeep={(version) => keep({ ...(version && { python: version }), pip })}
          />
        </Field>
      )}
    </>
  );
}

function CondaFields({ environment, locked, keep, problems }: FieldsProps) {
  const conda = environment?.conda ?? [];
  const channels = environment?.channels ?? [];
  return (
    <>
      <Field label="Conda packages" optional hint={hint} error={problemsAt(problems, "conda", true)}>
        <DraftArea
          rows={3}
          disabled={locked}
          placeholder={"samtools=1.20\npython=3.12"}
          value={conda.join("\n")}
          refuse={wrongConda}
          onKeep={(text) => keep({ conda: readPackages(text), ...(channels.length > 0 && { channels }) })}
        />
      </Field>
      {conda.length > 0 && (
        <Field
          label="Channels"
          optional
          hint="The first that has a package counts."
          error={problemsAt(problems, "channels", false)}
        >
          <DraftInput
            disabled={locked}
            placeholder="All that this installation allows"
            value={channels.join(", ")}
            refuse={wrongChannel}
            onKeep={(text) => {
              const names = readChannels(text);
              keep({ conda, ...(names.length > 0 && { channels: names }) });
            }}
          />
        </Field>
      )}
    </>
  );
}

function LockFields({ environment, locked, keep, problems }: FieldsProps) {
  return (
    <Field
      label="Lock"
      optional
      hint="What an earlier run chose: exactly those files are installed. Empty it to choose anew."
      error={problemsAt(problems, "lock", true)}
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
  );
}
