import { useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";
import type { Run } from "../queries.ts";
import { behindText, commitUrl } from "./commit.ts";

/** Commit shows the commit that a run used, and whether a newer one exists. */
export function Commit({ run }: { run: Pick<Run, "commit" | "definition" | "workflowId"> }) {
  const { data } = useQuery({
    queryKey: ["source", run.workflowId],
    queryFn: ({ client }) =>
      ask(apiOf(client).GET("/api/workflows/{id}/source", { params: { path: { id: run.workflowId } } })),
    enabled: run.commit !== null,
    retry: false, // the workflow may be gone, or have no code any more
  });
  if (!run.commit) return null;
  const source = run.definition.source as { git?: string } | undefined;
  const url = commitUrl(source?.git ?? "", run.commit);
  const short = run.commit.slice(0, 8);
  const behind = behindText(run.commit, data);
  return (
    <span title={`Code from ${source?.git ?? "Git"}, commit ${run.commit}`}>
      commit{" "}
      {url ? (
        <a className="font-mono underline" href={url} target="_blank" rel="noreferrer">
          {short}
        </a>
      ) : (
        <span className="font-mono">{short}</span>
      )}
      {behind && <span title="A new run uses the newest code."> ({behind})</span>}
    </span>
  );
}
