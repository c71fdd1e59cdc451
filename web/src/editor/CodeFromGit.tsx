import { useQuery } from "@tanstack/react-query";
import { useMemo, useSyncExternalStore } from "react";
import { connectionsQuery } from "../connections/queries.ts";
import { Checkbox, Select } from "../ui/Field.tsx";
import { useGraph } from "./context.ts";
import { DraftInput, Small } from "./fields.tsx";
import { gitConnections, refuseFolder, refuseGit, refuseRef } from "./gitSource.ts";

interface Source {
  git?: string;
  ref?: string;
  path?: string;
  connection?: string;
  submodules?: boolean;
}

/** useSource returns the definition's `source`, again when it changes. */
function useSource(): Source | undefined {
  const { document } = useGraph();
  const { extra } = document.roots;
  const store = useMemo(
    () => ({
      subscribe: (listener: () => void) => {
        extra.observe(listener);
        return () => extra.unobserve(listener);
      },
      now: () => JSON.stringify(extra.get("source")),
    }),
    [extra],
  );
  const text = useSyncExternalStore(store.subscribe, store.now);
  return useMemo(() => (text ? (JSON.parse(text) as Source) : undefined), [text]);
}

/** CodeFromGit names the repository that commands find at SOURCE_DIR. */
export function CodeFromGit({ locked, guest }: { locked: boolean; guest: boolean }) {
  const { document } = useGraph();
  const source = useSource();
  const keep = (change: Source) => {
    const next = Object.fromEntries(Object.entries({ ...source, ...change }).filter(([, value]) => value));
    document.edit(() => {
      if (next.git) document.roots.extra.set("source", next);
      else document.roots.extra.delete("source");
    });
  };
  return (
    <section className="space-y-2">
      <h3 className="text-sm">Code from Git</h3>
      <p className="text-[13px] text-muted">
        Commands find the code at <code>$SOURCE_DIR</code>; each run records the commit.
      </p>
      <Small label="Repository">
        <DraftInput
          disabled={locked}
          className="font-mono"
          placeholder="https://github.com/you/analysis.git"
          value={source?.git ?? ""}
          refuse={refuseGit}
          onKeep={(git) => keep({ git: git.trim() })}
        />
      </Small>
      {source?.git && (
        <>
          <div className="grid grid-cols-2 gap-2">
            <Small label="Branch, tag or commit">
              <DraftInput
                disabled={locked}
                className="font-mono"
                placeholder="default branch"
                value={source.ref ?? ""}
                refuse={refuseRef}
                onKeep={(ref) => keep({ ref: ref.trim() })}
              />
            </Small>
            <Small label="Folder">
              <DraftInput
                disabled={locked}
                className="font-mono"
                placeholder="entire repository"
                value={source.path ?? ""}
                refuse={refuseFolder}
                onKeep={(path) => keep({ path: path.trim() })}
              />
            </Small>
          </div>
          <Small label="Connection (for a private repository)">
            <ConnectionChoice
              locked={locked || guest} // connections are the team's
              value={source.connection ?? ""}
              onChange={(connection) => keep({ connection })}
            />
          </Small>
          <Checkbox
            label="Include submodules"
            disabled={locked}
            checked={source.submodules === true}
            onChange={(event) => keep({ submodules: event.target.checked })}
          />
        </>
      )}
    </section>
  );
}

interface ConnectionChoiceProps {
  locked: boolean;
  value: string;
  onChange: (id: string) => void;
}

/** ConnectionChoice chooses one of the team's connections to Git. One that is deleted or not visible to this person is shown by its id. */
function ConnectionChoice({ locked, value, onChange }: ConnectionChoiceProps) {
  const connections = useQuery({ ...connectionsQuery, enabled: !locked });
  const list = gitConnections(connections.data ?? [], value);
  return (
    <Select disabled={locked} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">Public repository</option>
      {list.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </Select>
  );
}
