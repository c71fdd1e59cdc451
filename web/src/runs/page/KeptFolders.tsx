import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";
import { may } from "../../identity/access.ts";
import { useMe } from "../../identity/queries.ts";
import { Answer } from "../../page/Answer.tsx";
import { Copy } from "../../ui/Copy.tsx";
import { Choice } from "../../ui/Field.tsx";
import { bytes, plural } from "../../ui/format.ts";
import { Table, Td, Th } from "../../ui/Table.tsx";
import { Time } from "../../ui/Time.tsx";

type KeptAttempt = Schemas["KeptAttempt"];

/** KeptFolders lists the working folders of failed attempts until they are deleted. */
export function KeptFolders({ runId, endedAt }: { runId: string; endedAt: string | null | undefined }) {
  const allowed = may(useMe().team.role, "start runs");
  const kept = useQuery({
    queryKey: ["kept", runId],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/runs/{id}/attempts", { params: { path: { id: runId } } })),
    enabled: allowed,
    // The server records the folders after the end of the run, so the first answer can lack them.
    refetchInterval: ({ state }) => (state.data?.length === 0 && justEnded(endedAt) ? 2000 : false),
  });
  const first = kept.data?.[0];
  if (!first) return null;
  return <Folders runId={runId} list={kept.data ?? []} first={first} />;
}

const justEnded = (at: string | null | undefined) => !!at && Date.now() - Date.parse(at) < 60_000;

const keyOf = ({ nodeId, shard, attempt }: KeptAttempt) => `${nodeId}/${shard}/${attempt}`;

function Folders({ runId, list, first }: { runId: string; list: KeptAttempt[]; first: KeptAttempt }) {
  const [key, setKey] = useState(keyOf(first));
  const chosen = list.find((each) => keyOf(each) === key) ?? first;
  const command = `millrace runs reproduce ${runId} ${chosen.nodeId}${chosen.shard > 0 ? ` --shard ${chosen.shard}` : ""} --to ${chosen.nodeId}`;
  return (
    <details className="mb-4 rounded-xl border bg-surface px-4 py-3 text-sm">
      <summary className="w-fit cursor-pointer font-medium">
        Files the failed {list.length === 1 ? "step" : "steps"} left behind
      </summary>
      <div className="mt-3 space-y-3">
        {list.length > 1 && (
          <Choice
            aria-label="Failed attempt"
            options={Object.fromEntries(
              list.map((each) => [keyOf(each), `${each.nodeId}, item ${each.shard}, attempt ${each.attempt}`]),
            )}
            value={key}
            onChange={setKey}
          />
        )}
        <p className="text-muted">
          Deleted <Time at={chosen.expiresAt} />. {bytes(chosen.bytes)} of {plural(chosen.files, "entry", "entries")}
          {chosen.truncated && " and more that aren't listed"}. To run the step again on your own machine:
        </p>
        <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
          <code className="min-w-0 flex-1 break-all">{command}</code>
          <Copy text={command} label="Copy CLI command" />
        </div>
        <Files key={keyOf(chosen)} runId={runId} kept={chosen} />
      </div>
    </details>
  );
}

function Files({ runId, kept }: { runId: string; kept: KeptAttempt }) {
  const { nodeId, shard, attempt } = kept;
  const files = useQuery({
    queryKey: ["kept", runId, nodeId, shard, attempt],
    queryFn: ({ client }) =>
      ask(
        apiOf(client).GET("/api/runs/{id}/attempts/{nodeId}/{shard}/{attempt}/files", {
          params: { path: { id: runId, nodeId, shard, attempt } },
        }),
      ),
    staleTime: 10 * 60_000, // the addresses live a little longer
  });
  return (
    <Answer query={files}>
      {(list) => (
        <Table
          label="Files of the failed step"
          head={
            <>
              <Th>File</Th>
              <Th className="text-right">Size</Th>
            </>
          }
        >
          {list.map((file) => (
            <tr key={file.path}>
              <Td className="break-all">
                {file.url ? (
                  <a href={file.url} className="underline">
                    {file.path}
                  </a>
                ) : (
                  <>
                    {file.path}{" "}
                    <span className="text-muted">({file.kind === "file" ? "too large to keep" : file.kind})</span>
                  </>
                )}
              </Td>
              <Td className="tabular text-right whitespace-nowrap">{file.kind === "file" ? bytes(file.size) : "–"}</Td>
            </tr>
          ))}
        </Table>
      )}
    </Answer>
  );
}
