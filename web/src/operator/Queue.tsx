import { useQuery } from "@tanstack/react-query";
import { CircleCheck } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { ConfirmDialog } from "../ui/Dialog.tsx";
import { Empty } from "../ui/Empty.tsx";
import { plural } from "../ui/format.ts";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { endRun, useAction } from "./actions.ts";
import { queueQuery } from "./queries.ts";

const reasons: Record<string, string> = {
  turn: "waiting for its turn",
  no_room: "waiting for free vCPUs and memory",
  team_limit: "team is at its limit",
  disk_low: "waiting for free disk space",
  executor_unavailable: "no worker can run it",
  image: "pulling its image",
  inputs: "fetching its inputs",
  environment: "installing its packages",
  team_suspended: "team is suspended",
  maintenance: "waiting for the end of maintenance",
};

/** Queue are the runs that have not ended, of all teams, oldest first. */
export function Queue() {
  const api = useApi();
  const queue = useQuery(queueQuery);
  const [ending, setEnding] = useState<string | null>(null);
  const end = useAction(
    (id: string) => endRun(api, id),
    "Cancelling the run",
    () => setEnding(null),
  );
  return (
    <Section
      title="Queue"
      intro={queue.data && `${plural(queue.data.queued, "run")} waiting, ${queue.data.running} running.`}
    >
      <Answer query={queue}>
        {({ runs }) =>
          runs.length === 0 ? (
            <Empty icon={<CircleCheck aria-hidden />} title="Queue is empty">
              Queued and running runs are listed here.
            </Empty>
          ) : (
            <Table
              label="Queue"
              head={
                <>
                  <Th>Run</Th>
                  <Th className="max-sm:hidden">Team</Th>
                  <Th>Requests</Th>
                  <Th>Since</Th>
                  <Th>State</Th>
                  <Th>
                    <span className="sr-only">Actions</span>
                  </Th>
                </>
              }
            >
              {runs.map((run) => (
                <tr key={run.id}>
                  <Td className="font-mono text-[13px]" title={run.id}>{`…${run.id.slice(-8)}`}</Td>
                  <Td
                    className="font-mono text-[13px] max-sm:hidden"
                    title={run.teamId}
                  >{`…${run.teamId.slice(-8)}`}</Td>
                  <Td className="whitespace-nowrap">{`${run.needs.vcpu} vCPU, ${run.needs.ramGb} GB`}</Td>
                  <Td className="whitespace-nowrap">
                    <Time at={run.since} />
                  </Td>
                  <Td>
                    {run.status === "running" ? "running" : (reasons[run.reason ?? ""] ?? run.reason ?? "queued")}
                  </Td>
                  <Td>
                    <Button size="sm" onClick={() => setEnding(run.id)}>
                      End
                    </Button>
                  </Td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
      <ConfirmDialog
        open={ending !== null}
        onOpenChange={() => setEnding(null)}
        title="End this run?"
        action="End run"
        danger
        busy={end.isPending}
        onConfirm={() => ending && end.mutate(ending)}
      >
        The run is cancelled, and outputs stored so far are kept. The team sees in its audit log that an operator ended
        it.
      </ConfirmDialog>
    </Section>
  );
}
