import { useQuery } from "@tanstack/react-query";
import { CircleCheck } from "lucide-react";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Empty } from "../ui/Empty.tsx";
import { plural } from "../ui/format.ts";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { queueQuery } from "./queries.ts";

const reasons: Record<string, string> = {
  turn: "waits for its turn",
  no_room: "waits for free vCPUs and memory",
  team_limit: "its team uses its share",
  disk_low: "waits for free disk space",
  executor_unavailable: "no worker can start it",
  image: "its image is fetched",
  inputs: "its inputs are fetched",
  environment: "its software is built",
  team_suspended: "its team is suspended",
};

/** Queue are the runs that have not ended, of all teams, oldest first. */
export function Queue() {
  const queue = useQuery(queueQuery);
  return (
    <Section
      title="Queue"
      intro={queue.data && `${plural(queue.data.queued, "run")} waiting, ${queue.data.running} running.`}
    >
      <Answer query={queue}>
        {({ runs }) =>
          runs.length === 0 ? (
            <Empty icon={<CircleCheck aria-hidden />} title="Nothing waits">
              Runs that wait or run are listed here, with the reason.
            </Empty>
          ) : (
            <Table
              label="Queue"
              head={
                <>
                  <Th>Run</Th>
                  <Th className="max-sm:hidden">Team</Th>
                  <Th>Needs</Th>
                  <Th>Since</Th>
                  <Th>State</Th>
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
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
    </Section>
  );
}
