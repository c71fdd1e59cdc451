import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Download } from "lucide-react";
import { apiOf, useApi } from "../api/team.ts";
import { Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { classes } from "../ui/classes.ts";
import { save } from "../ui/download.ts";
import { credits } from "../ui/format.ts";
import { SkeletonRows } from "../ui/Skeleton.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { csv, entryText } from "./model.ts";
import { pageOfUsage, type UsageEvent } from "./queries.ts";

/** Usage is the ledger, newest first, each run a link. */
export function Usage() {
  const api = useApi();
  const usage = useInfiniteQuery({
    queryKey: ["usage", "events"],
    queryFn: ({ client, pageParam }) => pageOfUsage(apiOf(client), 25, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const download = useMutation({
    mutationFn: async () => {
      const all: UsageEvent[] = [];
      let cursor: string | undefined;
      do {
        const page = await pageOfUsage(api, 500, cursor);
        all.push(...page.rows);
        cursor = page.next ?? undefined;
      } while (cursor);
      save(`millrace-usage-${new Date().toISOString().slice(0, 10)}.csv`, csv(all), "text/csv");
    },
  });
  const rows = usage.data?.pages.flatMap((page) => page.rows) ?? [];
  return (
    <Section
      title="Usage"
      actions={
        <Button
          size="sm"
          icon={<Download className="size-4" aria-hidden />}
          busy={download.isPending}
          disabledReason={rows.length === 0 ? "No usage to download yet." : null}
          onClick={() => download.mutate()}
        >
          Download CSV
        </Button>
      }
    >
      {usage.isError && <Problem title="Couldn't load usage" error={usage.error} retry={() => void usage.refetch()} />}
      {usage.isPending && <SkeletonRows rows={4} />}
      {usage.data && rows.length === 0 && (
        <p className="text-sm text-muted">No usage yet. Runs, storage and top-ups appear here.</p>
      )}
      {rows.length > 0 && (
        <Table
          label="Usage"
          head={
            <>
              <Th>When</Th>
              <Th>What</Th>
              <Th>By</Th>
              <Th className="text-right">Credits</Th>
            </>
          }
        >
          {rows.map((event) => (
            <tr key={event.id}>
              <Td className="text-muted">
                <Time at={event.createdAt} />
              </Td>
              <Td className="min-w-56">
                {event.runId ? (
                  <Link to="/runs/$runId" params={{ runId: event.runId }} className="hover:underline">
                    {entryText(event)}
                  </Link>
                ) : (
                  entryText(event)
                )}
              </Td>
              <Td className="whitespace-nowrap">{event.actor?.name ?? "–"}</Td>
              <Td className={classes("tabular text-right whitespace-nowrap", event.credits > 0 && "text-ok")}>
                {event.credits > 0 && "+"}
                {credits(event.credits)}
              </Td>
            </tr>
          ))}
        </Table>
      )}
      {usage.hasNextPage && (
        <Button className="mt-3" busy={usage.isFetchingNextPage} onClick={() => void usage.fetchNextPage()}>
          Show older
        </Button>
      )}
    </Section>
  );
}
