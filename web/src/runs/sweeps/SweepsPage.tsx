import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Table2 } from "lucide-react";
import { askPage, type Schemas } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";
import { Page } from "../../page/Page.tsx";
import { Problem } from "../../page/Problem.tsx";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Empty } from "../../ui/Empty.tsx";
import { SkeletonRows } from "../../ui/Skeleton.tsx";
import { Table, Td, Th } from "../../ui/Table.tsx";
import { Time } from "../../ui/Time.tsx";

/** SweepsPage lists the team's sweeps, the newest first. */
export function SweepsPage() {
  const sweeps = useInfiniteQuery({
    queryKey: ["sweeps"],
    queryFn: ({ client, pageParam }) =>
      askPage(apiOf(client).GET("/api/sweeps", { params: { query: { ...(pageParam && { cursor: pageParam }) } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
  });
  const rows = sweeps.data?.pages.flatMap((page) => page.rows);
  return (
    <Page title="Sweeps" intro="Groups of runs that try a workflow with different values.">
      {sweeps.isError && !rows && <Problem error={sweeps.error} retry={() => void sweeps.refetch()} />}
      {sweeps.isPending && <SkeletonRows rows={3} />}
      {rows?.length === 0 && <NoSweeps />}
      {rows && rows.length > 0 && <Sweeps rows={rows} />}
      {sweeps.hasNextPage && (
        <div className="mt-4 text-center">
          <Button busy={sweeps.isFetchingNextPage} onClick={() => void sweeps.fetchNextPage()}>
            Show older sweeps
          </Button>
        </div>
      )}
    </Page>
  );
}

function NoSweeps() {
  return (
    <Empty
      icon={<Table2 />}
      title="No sweeps yet"
      actions={
        <Link to="/workflows" className={buttonClass("primary")}>
          Choose a workflow
        </Link>
      }
    >
      Run a workflow, open <em>Run a sweep</em> in the dialog, and select the parameters that vary. A table compares the
      results.
    </Empty>
  );
}

function Sweeps({ rows }: { rows: Schemas["SweepRow"][] }) {
  return (
    <Table
      label="Sweeps"
      head={
        <>
          <Th>Sweep</Th>
          <Th>Varies</Th>
          <Th className="text-right">Runs</Th>
          <Th className="max-md:hidden">Started by</Th>
          <Th className="max-md:hidden">When</Th>
        </>
      }
    >
      {rows.map((sweep) => (
        <tr key={sweep.id} className="hover:bg-sunken/60">
          <Td className="min-w-32">
            <Link
              to="/runs/sweeps/$sweepId"
              params={{ sweepId: sweep.id }}
              search={{}}
              className="font-medium hover:underline"
            >
              {sweep.name ?? `Sweep of ${sweep.workflowName}`}
            </Link>
            <p className="text-[13px] text-muted">
              {sweep.name && sweep.workflowName}
              <span className="md:hidden">
                {sweep.name && " · "}
                <Time at={sweep.createdAt} />
              </span>
            </p>
          </Td>
          <Td className="break-all">{sweep.varied.join(", ")}</Td>
          <Td className="tabular text-right">{sweep.runCount}</Td>
          <Td className="whitespace-nowrap max-md:hidden">{sweep.startedBy.name}</Td>
          <Td className="text-muted max-md:hidden">
            <Time at={sweep.createdAt} />
          </Td>
        </tr>
      ))}
    </Table>
  );
}
