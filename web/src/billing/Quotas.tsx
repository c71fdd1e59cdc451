import { queryOptions, useQuery } from "@tanstack/react-query";
import { ask, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { bytes, count, day } from "../ui/format.ts";
import { Table, Td, Th } from "../ui/Table.tsx";

type TeamQuotas = Schemas["TeamQuotas"];
type Use = Schemas["VcpuUse"];

const quotasQuery = queryOptions({
  queryKey: ["billing", "quotas"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/billing/quotas")),
});

/** hours are vCPU hours with at most two decimals. */
export const hours = (n: number) => count(Math.round(n * 100) / 100);

const used = (use: Use) => use.usedVcpuHours + use.heldVcpuHours;

/** Quotas are what the team may use, and what it and whoever looks have used. */
export function Quotas() {
  const quotas = useQuery(quotasQuery);
  return (
    <Section title="Quotas" intro="Set by the operator of this installation.">
      <Answer query={quotas} rows={2}>
        {(data) => (
          <div className="space-y-4">
            <dl className="grid gap-3 sm:grid-cols-2 lg:grid-cols-4">
              <Fact term="Team, this month" of={data.monthlyVcpuHours} value={used(data.team)} />
              <Fact term="You, this month" of={data.perPersonVcpuHours} value={used(data.own)} />
              <Item term="Storage">
                {bytes(data.storageBytes)}
                {data.storageGb === null ? ", no limit" : ` of ${count(data.storageGb)} GB`}
              </Item>
              <Item term="Executors">{data.executors?.join(", ") ?? "All"}</Item>
            </dl>
            <p className="text-sm text-muted">
              The use includes hours that are reserved for active runs. It starts again on {day(data.renewsAt)}.
            </p>
            {data.people && data.people.length > 0 && <People list={data.people} />}
          </div>
        )}
      </Answer>
    </Section>
  );
}

function Fact({ term, value, of }: { term: string; value: number; of: number | null }) {
  return (
    <Item term={term}>
      {hours(value)}
      {of === null ? " vCPU hours, no limit" : ` of ${hours(of)} vCPU hours`}
    </Item>
  );
}

function Item({ term, children }: { term: string; children: React.ReactNode }) {
  return (
    <div className="rounded-xl border bg-surface p-4">
      <dt className="text-sm text-muted">{term}</dt>
      <dd className="mt-1 font-medium">{children}</dd>
    </div>
  );
}

function People({ list }: { list: NonNullable<TeamQuotas["people"]> }) {
  return (
    <Table
      label="Use of each person this month"
      head={
        <>
          <Th>Person</Th>
          <Th>vCPU hours</Th>
        </>
      }
    >
      {list.map((person) => (
        <tr key={person.id ?? ""}>
          <Td>{person.name ?? (person.id === null ? "Guests" : "A former member")}</Td>
          <Td>{hours(used(person))}</Td>
        </tr>
      ))}
    </Table>
  );
}
