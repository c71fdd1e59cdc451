import { useMemo, useSyncExternalStore } from "react";
import { Checkbox } from "../ui/Field.tsx";
import { useGraph } from "./context.ts";
import { DraftInput, Small } from "./fields.tsx";
import { refuseFolder, refuseGit, refuseRef } from "./gitSource.ts";

interface Source {
  git?: string;
  ref?: string;
  path?: string;
  connection?: string;
  submodules?: boolean;
}

/** useSource is the definition's `source`, again when it changes. */
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
export function CodeFromGit({ locked }: { locked: boolean }) {
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
        Commands find it at <code>$SOURCE_DIR</code>; each run records the commit.
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
                placeholder="all of it"
                value={source.path ?? ""}
                refuse={refuseFolder}
                onKeep={(path) => keep({ path: path.trim() })}
              />
            </Small>
          </div>
          <Small label="Connection, for a private repository">
            <DraftInput
              disabled={locked}
              className="font-mono"
              placeholder="conn_…"
              value={source.connection ?? ""}
              refuse={(text) => (text === "" || /^conn_\w{1,58}$/.test(text.trim()) ? null : "The id of a connection.")}
              onKeep={(connection) => keep({ connection: connection.trim() })}
            />
          </Small>
          <Checkbox
            label="With the repositories that it names (submodules)"
            disabled={locked}
            checked={source.submodules === true}
            onChange={(event) => keep({ submodules: event.target.checked })}
          />
        </>
      )}
    </section>
  );
}
