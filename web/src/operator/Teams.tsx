import { useInfiniteQuery } from "@tanstack/react-query";
import { Users } from "lucide-react";
import { useState } from "react";
import { hours } from "../billing/Quotas.tsx";
import { useMissing } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { bytes, credits } from "../ui/format.ts";
import { Pill } from "../ui/Pill.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { ChangeTeam } from "./ChangeTeam.tsx";
import { type Team, teamsQuery } from "./queries.ts";
import { UsageDownload } from "./UsageDownload.tsx";

/** Teams are all of them, with what they use. */
export function Teams() {
  const teams = useInfiniteQuery(teamsQuery);
  const free = useMissing("billing");
  const [changed, setChanged] = useState<Team | null>(null);
  return (
    <Section title="Teams" intro="What each team used this month, and its storage." actions={<UsageDownload />}>
      <Answer query={teams}>
        {({ pages }) => {
          const list = pages.flatMap((page) => page.rows);
          return list.length === 0 ? (
            <Empty icon={<Users aria-hidden />} title="No teams yet">
              Everyone who signs up gets a team.
            </Empty>
          ) : (
            <Table
              label="Teams"
              head={
                <>
                  <Th>Team</Th>
                  <Th>Plan</Th>
                  <Th className="max-sm:hidden">Members</Th>
                  <Th>vCPU hours</Th>
                  {!free && <Th className="max-sm:hidden">Spent</Th>}
                  {!free && <Th className="max-sm:hidden">Left</Th>}
                  <Th className="max-sm:hidden">Files</Th>
                  <Th>
                    <span className="sr-only">Actions</span>
                  </Th>
                </>
              }
            >
              {list.map((team) => (
                <tr key={team.id}>
                  <Td title={team.id}>
                    {team.name} {team.suspendedAt && <Pill tone="danger">suspended</Pill>}
                  </Td>
                  <Td>{team.plan}</Td>
                  <Td className="max-sm:hidden">{team.members}</Td>
                  <Td className="whitespace-nowrap">
                    {hours(team.usedVcpuHours + team.heldVcpuHours)}
                    {team.monthlyVcpuHours !== null && ` of ${hours(team.monthlyVcpuHours)}`}
                  </Td>
                  {!free && <Td className="max-sm:hidden">{credits(team.creditsSpent)}</Td>}
                  {!free && <Td className="max-sm:hidden">{credits(team.creditsLeft)}</Td>}
                  <Td className="whitespace-nowrap max-sm:hidden">{bytes(team.storageBytes)}</Td>
                  <Td>
                    <Button size="sm" aria-label={`Manage ${team.name}`} onClick={() => setChanged(team)}>
                      Manage
                    </Button>
                  </Td>
                </tr>
              ))}
            </Table>
          );
        }}
      </Answer>
      {teams.hasNextPage && (
        <Button className="mt-4" busy={teams.isFetchingNextPage} onClick={() => void teams.fetchNextPage()}>
          Show more
        </Button>
      )}
      {changed && <ChangeTeam team={changed} onClose={() => setChanged(null)} />}
    </Section>
  );
}
