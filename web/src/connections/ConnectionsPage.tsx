import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Cable, Check, Plus, X } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Page } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { ConfirmDialog } from "../ui/Dialog.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { NewConnectionDialog } from "./NewConnectionDialog.tsx";
import { type Connection, connectionsQuery, deleteConnection, testConnection } from "./queries.ts";

/** ConnectionsPage is how the team reaches its data elsewhere. */
export function ConnectionsPage() {
  const may = useWhyNot();
  const hidden = may("use connections");
  const whyNot = may("manage connections");
  const connections = useQuery({ ...connectionsQuery, enabled: hidden === null });
  const [adding, setAdding] = useState(false);
  const add = (
    <Button
      look="primary"
      icon={<Plus className="size-4" aria-hidden />}
      disabledReason={whyNot}
      onClick={() => setAdding(true)}
    >
      New connection
    </Button>
  );
  return (
    <Page
      title="Connections"
      intro="Access to the buckets, HTTPS hosts and Git hosts that hold your team's data and code."
      actions={connections.data?.length ? add : null}
    >
      {hidden ? (
        <Notice>{hidden}</Notice>
      ) : (
        <Answer query={connections}>
          {(list) =>
            list.length === 0 ? (
              <Empty icon={<Cable aria-hidden />} title="No connections yet" actions={add}>
                Connect a bucket to browse it and use its files in runs. Its keys are stored encrypted, never shown
                again, and sent only to its own host.
              </Empty>
            ) : (
              <Connections list={list} whyNot={whyNot} />
            )
          }
        </Answer>
      )}
      {adding && <NewConnectionDialog onClose={() => setAdding(false)} />}
    </Page>
  );
}

function Connections({ list, whyNot }: { list: Connection[]; whyNot: string | null }) {
  const api = useApi();
  const client = useQueryClient();
  const [ending, setEnding] = useState<Connection | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: connectionsQuery.queryKey });
  const end = useMutation({
    mutationFn: (connection: Connection) => deleteConnection(api, connection.id),
    onSuccess: (_, connection) => toast.ok(`Deleted ${connection.name}`),
    onSettled: refresh,
  });
  return (
    <>
      <Table
        label="Connections"
        head={
          <>
            <Th>Name</Th>
            <Th className="max-sm:hidden">Location</Th>
            <Th>Last test</Th>
            <Th>
              <span className="sr-only">Actions</span>
            </Th>
          </>
        }
      >
        {list.map((connection) => (
          <tr key={connection.id}>
            <Td className="break-words">
              {connection.name}
              {connection.hint && (
                <span className="block text-[13px] text-muted">
                  secret ends in <code>{connection.hint}</code>
                </span>
              )}
            </Td>
            <Td className="break-all max-sm:hidden">
              <code>{leadsTo(connection)}</code>
            </Td>
            <Td>
              {connection.test.ok ? (
                <Pill tone="ok" icon={<Check aria-hidden />}>
                  OK
                </Pill>
              ) : (
                <Pill tone="danger" icon={<X aria-hidden />}>
                  Failed
                </Pill>
              )}
              <span className="block text-[13px] text-muted">
                {!connection.test.ok && `${connection.test.message}, `}
                <Time at={connection.test.at} />
              </span>
            </Td>
            <Td>
              <div className="flex justify-end gap-2 max-sm:flex-col">
                <TestButton connection={connection} onDone={refresh} />
                <Button
                  size="sm"
                  look="danger-quiet"
                  disabledReason={whyNot}
                  aria-label={`Delete ${connection.name}`}
                  onClick={() => setEnding(connection)}
                >
                  Delete
                </Button>
              </div>
            </Td>
          </tr>
        ))}
      </Table>
      <ConfirmDialog
        open={ending !== null}
        onOpenChange={(open) => !open && setEnding(null)}
        title={`Delete ${ending?.name}?`}
        action="Delete connection"
        onConfirm={() => {
          if (ending) end.mutate(ending);
          setEnding(null);
        }}
      >
        Its credentials are deleted. Runs that need it will fail.
      </ConfirmDialog>
    </>
  );
}

function TestButton({ connection, onDone }: { connection: Connection; onDone: () => void }) {
  const api = useApi();
  const test = useMutation({
    mutationFn: () => testConnection(api, connection.id),
    onSuccess: (result) =>
      result.ok ? toast.ok(`${connection.name}: test succeeded`) : toast.error(`${connection.name}: ${result.message}`),
    onSettled: onDone,
  });
  return (
    <Button size="sm" busy={test.isPending} aria-label={`Test ${connection.name}`} onClick={() => test.mutate()}>
      Test
    </Button>
  );
}

function leadsTo({ bucket, prefix, host }: Connection): string {
  return bucket ? `s3://${bucket}/${prefix ?? ""}` : (host ?? "");
}
