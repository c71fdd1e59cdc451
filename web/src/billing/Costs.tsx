import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { Download } from "lucide-react";
import { useState } from "react";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { save } from "../ui/download.ts";
import { Choice } from "../ui/Field.tsx";
import { count, credits } from "../ui/format.ts";
import { Table, Td, Th } from "../ui/Table.tsx";
import { groupsCsv, nice } from "./model.ts";
import { costsQuery, type Days, type Grouping, type UsageGroup } from "./queries.ts";

const groupings: Record<Grouping, string> = { workflow: "By workflow", user: "By person", tag: "By tag" };

/** Costs is what runs cost in the range of the page, by what they are of. */
export function Costs() {
  const search = useSearch({ from: "/inside/billing" });
  const days = Number(search.days ?? 30) as Days;
  const [by, setBy] = useState<Grouping>("workflow");
  const costs = useQuery(costsQuery(days, by));
  const groups = costs.data?.groups ?? [];
  return (
    <Section
      title="Run costs"
      actions={
        <div className="flex items-center gap-2">
          <Choice aria-label="Group by" className="w-36!" options={groupings} value={by} onChange={setBy} />
          <Button
            size="sm"
            icon={<Download className="size-4" aria-hidden />}
            disabledReason={groups.length === 0 ? "No costs to download yet." : null}
            onClick={() =>
              costs.data && save(`millrace-costs-by-${by}.csv`, groupsCsv(costs.data.series, groups), "text/csv")
            }
          >
            CSV
          </Button>
        </div>
      }
    >
      <Answer query={costs} rows={3}>
        {() =>
          groups.length === 0 ? (
            <p className="text-sm text-muted">No runs in the last {days} days.</p>
          ) : (
            <Table
              label={`Costs ${groupings[by].toLowerCase()}`}
              head={
                <>
                  <Th>Name</Th>
                  <Th className="max-sm:hidden">Last {days} days</Th>
                  <Th className="text-right">Runs</Th>
                  <Th className="text-right">Credits</Th>
                </>
              }
            >
              {groups.map((group) => (
                <tr key={`${group.by} ${group.key} ${group.name}`}>
                  <Td className="break-words">{group.name}</Td>
                  <Td className="max-sm:hidden">
                    <Bars group={group} />
                  </Td>
                  <Td className="tabular text-right">{count(group.runs)}</Td>
                  <Td className="tabular text-right whitespace-nowrap">{credits(group.credits)}</Td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
    </Section>
  );
}

const height = 24;

/** Bars is a group's credits a day, small; the numbers are in the CSV. */
function Bars({ group }: { group: UsageGroup }) {
  const top = nice(Math.max(...group.series, 0));
  const step = 200 / group.series.length;
  return (
    <svg viewBox={`0 0 200 ${height}`} preserveAspectRatio="none" className="h-6 w-full max-w-56" aria-hidden>
      {group.series.map((spent, index) => {
        const size = (spent / top) * height;
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a day is its place
            key={index}
            x={index * step}
            width={step * 0.8}
            y={height - size}
            height={size}
            fill="var(--accent)"
          />
        );
      })}
    </svg>
  );
}
