import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { Play, Radio, Search, Table2, X } from "lucide-react";
import { useState } from "react";
import { useApi } from "../../api/team.ts";
import { useMe, useMissing } from "../../identity/queries.ts";
import { Answer } from "../../page/Answer.tsx";
import { Elsewhere } from "../../page/Elsewhere.tsx";
import { Favorite, useFavorites } from "../../page/Favorite.tsx";
import { Page } from "../../page/Page.tsx";
import { runTitle } from "../../page/runTitle.ts";
import { looks, StatusPill } from "../../page/status.tsx";
import { useChange } from "../../page/useChange.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Empty } from "../../ui/Empty.tsx";
import { Checkbox, Choice } from "../../ui/Field.tsx";
import { credits, duration, plural } from "../../ui/format.ts";
import { Progress } from "../../ui/Progress.tsx";
import { useTicks } from "../../ui/rows.tsx";
import { SearchBox } from "../../ui/SearchBox.tsx";
import { Table, Td, Th } from "../../ui/Table.tsx";
import { Tags } from "../../ui/Tags.tsx";
import { Time, useNow } from "../../ui/Time.tsx";
import { useSettled } from "../../ui/useSettled.ts";
import { workflowsQuery } from "../../workflows/queries.ts";
import { firstLine } from "../errorMessage.ts";
import { pageOfRuns, type RunFilter, type RunRow, runsQuery } from "../queries.ts";
import { waitingText } from "../waiting.ts";
import { BulkActions } from "./BulkActions.tsx";
import { SavedFilters } from "./SavedFilters.tsx";

const dayMs = 86_400_000;
const stateNames = {
  "": "Any state",
  queued: looks.queued.word,
  running: looks.running.word,
  completed: looks.completed.word,
  failed: looks.failed.word,
  cancelled: looks.cancelled.word,
  interrupted: looks.interrupted.word,
};
const ranges = { "1d": 1, "7d": 7, "30d": 30 } as const;

export function RunsPage() {
  const search = useSearch({ from: "/inside/runs" });
  const set = useChange<typeof search>();
  const me = useMe();
  const words = useSettled((search.q ?? "").trim().slice(0, 200));
  const filter: RunFilter = {
    ...(search.status && { status: search.status }),
    ...(search.workflow && { workflowId: search.workflow }),
    ...(search.tag && { tag: search.tag }),
    ...(search.mine && { startedBy: me.id }),
    ...(search.favorites && { favorite: true }),
    ...(words && { q: words }),
    // Rounded to the hour, so that the query key stays the same while the page is open.
    ...(search.since && {
      since: new Date(Math.floor((Date.now() - ranges[search.since] * dayMs) / 3_600_000) * 3_600_000).toISOString(),
    }),
  };
  const runs = useQuery(runsQuery(filter));
  const workflows = useQuery(workflowsQuery);
  const workflowNames: Record<string, string> = { "": "Any workflow" };
  for (const { id, name } of workflows.data ?? []) workflowNames[id] = name;
  const saveable = Boolean(search.status || search.workflow || search.since || search.q || search.tag || search.mine);
  const filtered = saveable || search.favorites === true;
  return (
    <Page
      title="Runs"
      intro="All of your team's runs, newest first."
      actions={
        <>
          <Link to="/runs/pipelines" className={buttonClass("secondary")}>
            <Radio className="size-4" aria-hidden /> Watch a pipeline
          </Link>
          <Link to="/runs/sweeps" className={buttonClass("secondary")}>
            <Table2 className="size-4" aria-hidden /> Sweeps
          </Link>
        </>
      }
    >
      <div className="mb-4 grid grid-cols-2 gap-2 lg:grid-cols-[1fr_auto_auto_auto]">
        <SearchBox
          label="Search the list"
          placeholder="Name, tag, person, error or #12"
          className="max-lg:col-span-2"
          value={search.q ?? ""}
          onChange={(words) => set({ q: words || undefined })}
        />
        <Choice
          aria-label="State"
          options={stateNames}
          value={search.status ?? ""}
          onChange={(status) => set({ status: status || undefined })}
        />
        <Choice
          aria-label="Workflow"
          className="max-lg:order-1 max-lg:col-span-2 lg:max-w-64"
          options={workflowNames}
          value={search.workflow ?? ""}
          onChange={(workflow) => set({ workflow: workflow || undefined })}
        />
        <Choice
          aria-label="Time"
          options={{ "": "Any time", "1d": "Last 24 hours", "7d": "Last 7 days", "30d": "Last 30 days" }}
          value={search.since ?? ""}
          onChange={(since) => set({ since: since || undefined })}
        />
      </div>
      <div className="mb-3 flex flex-wrap items-center gap-x-4 gap-y-2">
        <Checkbox
          label="Only mine"
          checked={search.mine ?? false}
          onChange={(event) => set({ mine: event.target.checked || undefined })}
        />
        <Checkbox
          label="Only favorites"
          checked={search.favorites ?? false}
          onChange={(event) => set({ favorites: event.target.checked || undefined })}
        />
        {search.tag && (
          <Button
            size="sm"
            aria-label={`Remove the filter for the tag ${search.tag}`}
            icon={<X className="size-4" aria-hidden />}
            onClick={() => set({ tag: undefined })}
          >
            {search.tag}
          </Button>
        )}
        <SavedFilters
          current={
            saveable
              ? {
                  ...(search.status && { status: search.status }),
                  ...(search.workflow && { workflowId: search.workflow }),
                  ...(search.tag && { tag: search.tag }),
                  ...(search.mine && { startedBy: me.id }),
                  ...(words && { q: words }),
                  ...(search.since && { days: ranges[search.since] }),
                }
              : null
          }
          onChoose={(kept) => {
            const since = Object.entries(ranges).find(([, days]) => days === kept.days)?.[0];
            set({
              status: kept.status ?? undefined,
              workflow: kept.workflowId ?? undefined,
              tag: kept.tag ?? undefined,
              mine: kept.startedBy === me.id || undefined,
              q: kept.q ?? undefined,
              since: since as keyof typeof ranges | undefined,
              favorites: undefined,
            });
          }}
        />
      </div>
      {search.workflow && workflows.data && !Object.hasOwn(workflowNames, search.workflow) && (
        <Elsewhere key={search.workflow} id={search.workflow} />
      )}
      <Answer query={runs}>
        {(rows) =>
          rows.length === 0 ? (
            <NoRuns
              filtered={filtered}
              clear={() =>
                set({
                  status: undefined,
                  workflow: undefined,
                  since: undefined,
                  q: undefined,
                  tag: undefined,
                  mine: undefined,
                  favorites: undefined,
                })
              }
            />
          ) : (
            <RunsTable key={JSON.stringify(filter)} first={rows} filter={filter} />
          )
        }
      </Answer>
    </Page>
  );
}

function NoRuns({ filtered, clear }: { filtered: boolean; clear: () => void }) {
  if (filtered) {
    return (
      <Empty icon={<Search />} title="No results" actions={<Button onClick={clear}>Show all runs</Button>}>
        No runs match these filters.
      </Empty>
    );
  }
  return (
    <Empty
      icon={<Play />}
      title="No runs yet"
      actions={
        <Link to="/templates" className={buttonClass("primary")}>
          Run a template
        </Link>
      }
    >
      Run a workflow to watch its steps live. Its outputs are kept here with their checksums.
    </Empty>
  );
}

function RunsTable({ first, filter }: { first: RunRow[]; filter: RunFilter }) {
  const free = useMissing("billing");
  const api = useApi();
  const [older, setOlder] = useState<RunRow[]>([]);
  const [cursor, setCursor] = useState<string | null | undefined>(undefined);
  const { ticked, tick, clear } = useTicks();
  const favorites = useFavorites();
  const seen = new Set(first.map((run) => run.id));
  const rows = [...first, ...older.filter((run) => !seen.has(run.id))];
  const more = useMutation({
    mutationFn: async () => {
      // The first page is polled, so it keeps no cursor.
      const from = cursor ?? (await pageOfRuns(api, filter)).next;
      const page = from ? await pageOfRuns(api, filter, from) : { rows: [], next: null };
      setOlder((now) => [...now, ...page.rows]);
      setCursor(page.next);
    },
  });
  return (
    <>
      <div className="mb-2 flex min-h-9 flex-wrap items-center justify-between gap-2 text-sm text-muted">
        <Counts rows={rows} />
        {ticked.size > 0 && <BulkActions runs={rows.filter((run) => ticked.has(run.id))} clear={clear} />}
      </div>
      <Table
        label="Runs"
        head={
          <>
            <Th className="w-8">
              <span className="sr-only">Select</span>
            </Th>
            <Th>Workflow</Th>
            <Th>State</Th>
            <Th className="max-md:hidden">Started by</Th>
            <Th className="max-md:hidden">When</Th>
            <Th className="text-right max-md:hidden">Duration</Th>
            {!free && <Th className="text-right max-md:hidden">Credits</Th>}
          </>
        }
      >
        {rows.map((run) => (
          <tr key={run.id} className="hover:bg-sunken/60">
            <Td>
              <Checkbox
                label={`Select the run ${runTitle(run)}`}
                hideLabel
                checked={ticked.has(run.id)}
                onChange={(event) => tick([run.id], event.target.checked)}
              />
            </Td>
            <Td className="min-w-32">
              <div className="flex items-center">
                <Link to="/runs/$runId" params={{ runId: run.id }} className="font-medium hover:underline">
                  {run.workflowName} <span className="tabular font-normal text-muted">#{run.number}</span>
                </Link>
                <Favorite id={run.id} name={runTitle(run)} on={favorites.has(run.id)} />
              </div>
              {run.name && <p className="line-clamp-1 max-w-md">{run.name}</p>}
              {run.sweepId && (
                <Link
                  to="/runs/sweeps/$sweepId"
                  params={{ sweepId: run.sweepId }}
                  search={{}}
                  className="text-[13px] text-muted underline"
                >
                  Part of a sweep
                </Link>
              )}
              {run.tags.length > 0 && (
                <p className="max-w-md">
                  {run.tags.map((tag) => (
                    <Link key={tag} to="/runs" search={{ tag }} className="hover:underline">
                      <Tags tags={[tag]} />
                    </Link>
                  ))}
                </p>
              )}
              {run.errorMessage && (
                <p className="line-clamp-1 max-w-md text-[13px] text-muted">{firstLine(run.errorMessage)[0]}</p>
              )}
              {waitingText(run) && <p className="max-w-md text-[13px] text-muted">{waitingText(run)}</p>}
              <p className="text-[13px] text-muted md:hidden">
                <Time at={run.createdAt} />
              </p>
            </Td>
            <Td className="min-w-36">
              <StatusPill
                status={run.status}
                {...(run.status === "running" && { suffix: `${Math.round(run.progressPercent)}%` })}
              />
              {run.status === "running" && (
                <Progress
                  className="mt-1.5 max-w-32"
                  value={run.progressPercent}
                  label={`Progress of ${run.workflowName}`}
                />
              )}
            </Td>
            <Td className="whitespace-nowrap max-md:hidden">
              {run.startedBy.name}
              {run.startedBy.type !== "user" && <span className="text-muted"> ({run.startedBy.type})</span>}
            </Td>
            <Td className="text-muted max-md:hidden">
              <Time at={run.createdAt} />
            </Td>
            <Td className="tabular text-right whitespace-nowrap max-md:hidden">
              <Took run={run} />
            </Td>
            {!free && <Td className="tabular text-right max-md:hidden">{credits(run.creditsUsed)}</Td>}
          </tr>
        ))}
      </Table>
      {first.length >= 50 && cursor !== null && (
        <div className="mt-4 text-center">
          <Button busy={more.isPending} onClick={() => more.mutate()}>
            Show older runs
          </Button>
        </div>
      )}
    </>
  );
}

function Counts({ rows }: { rows: RunRow[] }) {
  const counts = new Map<RunRow["status"], number>();
  for (const run of rows) counts.set(run.status, (counts.get(run.status) ?? 0) + 1);
  return (
    <p role="status">
      {plural(rows.length, "run")}
      {[...counts].map(([status, count]) => ` · ${count} ${looks[status].word.toLowerCase()}`).join("")}
    </p>
  );
}

/** Took shows the duration and updates while the run is active. */
function Took({ run }: { run: RunRow }) {
  const going = run.status === "running" && run.startedAt !== null;
  if (!going) return <>{run.durationMs === null ? "–" : duration(run.durationMs)}</>;
  return <Ticking since={run.startedAt ?? run.createdAt} />;
}

function Ticking({ since }: { since: string }) {
  return <>{duration(Math.max(0, useNow() - Date.parse(since)))}</>;
}
