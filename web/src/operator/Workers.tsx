import { useQuery } from "@tanstack/react-query";
import { Server } from "lucide-react";
import { useApi } from "../api/team.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { drain, useAction } from "./actions.ts";
import { type Worker, workersQuery } from "./queries.ts";

/** Workers are the processes that execute runs. */
export function Workers() {
  const workers = useQuery(workersQuery);
  return (
    <Section title="Workers">
      <Answer query={workers}>
        {(list) =>
          list.length === 0 ? (
            <Empty icon={<Server aria-hidden />} title="No active workers">
              A server executes runs itself unless it is configured not to. Workers that haven't reported for a minute
              aren't shown.
            </Empty>
          ) : (
            <Table
              label="Workers"
              head={
                <>
                  <Th>Host</Th>
                  <Th>Runs</Th>
                  <Th>vCPUs</Th>
                  <Th className="max-sm:hidden">Memory</Th>
                  <Th className="max-sm:hidden">Version</Th>
                  <Th>State</Th>
                  <Th>
                    <span className="sr-only">Actions</span>
                  </Th>
                </>
              }
            >
              {list.map((worker) => (
                <tr key={worker.id}>
                  <Td title={worker.id}>{worker.executor ? `${worker.host}, ${worker.executor}` : worker.host}</Td>
                  <Td>{worker.runs}</Td>
                  <Td className="whitespace-nowrap">{`${worker.used.vcpu} of ${worker.has.vcpu}`}</Td>
                  <Td className="whitespace-nowrap max-sm:hidden">{`${worker.used.ramGb} of ${worker.has.ramGb} GB`}</Td>
                  <Td className="max-sm:hidden">{worker.version}</Td>
                  <Td>
                    <State worker={worker} />
                  </Td>
                  <Td>
                    <Drain worker={worker} />
                  </Td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
    </Section>
  );
}

function Drain({ worker }: { worker: Worker }) {
  const api = useApi();
  const draining = !worker.draining;
  const act = useAction(
    () => drain(api, worker.id, draining),
    draining ? "The worker finishes its runs and takes no new ones" : "The worker takes runs again",
  );
  return (
    <Button size="sm" busy={act.isPending} onClick={() => act.mutate(undefined)}>
      {draining ? "Drain" : "Resume"}
    </Button>
  );
}

function State({ worker }: { worker: Worker }) {
  if (worker.problem) return <span className="text-danger">{worker.problem}</span>;
  if (worker.diskLow) return <Pill tone="danger">disk low</Pill>;
  if (worker.draining) return <Pill tone="warn">draining</Pill>;
  return <Pill tone="ok">ready</Pill>;
}
