import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import { useStore } from "zustand";
import { type RunMessage, useRunStream } from "../../api/stream.ts";
import { useApi } from "../../api/team.ts";
import { Answer } from "../../page/Answer.tsx";
import { useTitle } from "../../page/Page.tsx";
import { runTitle } from "../../page/runTitle.ts";
import { active, looks } from "../../page/status.tsx";
import { useChange } from "../../page/useChange.ts";
import { Skeleton, SkeletonRows } from "../../ui/Skeleton.tsx";
import { TabPanel, Tabs } from "../../ui/Tabs.tsx";
import { LogView } from "../log/LogView.tsx";
import type { LogTarget } from "../log/logSource.ts";
import type { Run } from "../queries.ts";
import { isReported, runQuery } from "../queries.ts";
import { CopyState } from "../results/CopyState.tsx";
import { Outputs } from "../results/Outputs.tsx";
import { RunStore } from "../runStore.ts";
import { Compare } from "./Compare.tsx";
import { Details } from "./Details.tsx";
import { Events } from "./Events.tsx";
import { Failure } from "./Failure.tsx";
import { firstFailure } from "./failure.ts";
import { NodePanel } from "./NodePanel.tsx";
import { Resources } from "./Resources.tsx";
import { RetryButtons } from "./Retry.tsx";
import { RunHead } from "./RunHead.tsx";
import { Timeline } from "./Timeline.tsx";

const Items = lazy(async () => ({ default: (await import("./Items.tsx")).Items }));
const Results = lazy(async () => ({ default: (await import("../results/Results.tsx")).Results }));
const KeptFolders = lazy(async () => ({ default: (await import("./KeptFolders.tsx")).KeptFolders }));
const LeftOut = lazy(async () => ({ default: (await import("./ReportedAbout.tsx")).LeftOut }));
const RunGraph = lazy(async () => ({ default: (await import("./RunGraph.tsx")).RunGraph }));

const tabs = ["timeline", "items", "log", "outputs", "events", "resources", "compare", "details"] as const;
type Tab = (typeof tabs)[number];
const labels: Record<Tab, string> = {
  timeline: "Timeline",
  items: "Items",
  log: "Log",
  outputs: "Outputs",
  events: "Events",
  resources: "Resources",
  compare: "Compare",
  details: "Details",
};

/** RunPage shows one run and updates while it runs. */
export function RunPage() {
  const { runId } = useParams({ from: "/inside/runs/$runId" });
  const run = useQuery(runQuery(runId));
  return (
    <div className="mx-auto w-full max-w-7xl px-4 py-5 md:px-8">
      <Answer query={run} id={runId} loading={<SkeletonRows rows={6} />}>
        {(found) => <Follow key={found.id} run={found} />}
      </Answer>
    </div>
  );
}

/** useLiveRun keeps a RunStore current from the stream, and reads the run again when a step ends. */
function useLiveRun(run: Run): { store: RunStore; error: string | null; away: boolean } {
  const api = useApi();
  const [store] = useState(() => new RunStore(api, run));
  const client = useQueryClient();
  const following = useRef(active(run.status));
  useEffect(() => store.refresh(run), [store, run]);
  const { id } = run;
  const soon = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const readAgain = useCallback(
    (pause: number) => {
      soon.current ??= setTimeout(() => {
        soon.current = undefined;
        void client.invalidateQueries({ queryKey: runQuery(id).queryKey });
      }, pause);
    },
    [client, id],
  );
  useEffect(() => () => clearTimeout(soon.current), []);
  const onMessage = useCallback(
    (message: RunMessage) => {
      store.receive(message);
      if (message.type === "done") {
        clearTimeout(soon.current);
        soon.current = undefined;
        readAgain(0);
        void client.invalidateQueries({ queryKey: ["runs"] });
      } else if (message.type === "snapshot" || message.nodeStatus) {
        readAgain(3000); // a snapshot has no steps, and some may have begun since the run was read
      }
    },
    [store, client, readAgain],
  );
  const { connection, error } = useRunStream(following.current ? run.id : null, onMessage);
  return { store, error, away: following.current && connection === "reconnecting" };
}

function Follow({ run }: { run: Run }) {
  const { store, error, away } = useLiveRun(run);
  const search = useSearch({ from: "/inside/runs/$runId" });
  const set = useChange<typeof search>();
  const now = useStore(store.state, (state) => state.run);
  const broken = now.status === "failed" || now.status === "interrupted";
  const blamed = useStore(store.state, (state) =>
    broken ? (firstFailure(state.run, state.nodes.values())?.id ?? null) : null,
  );
  // A failed run opens on the step that failed, unless the address says otherwise.
  const chosen = search.node === "none" ? null : (search.node ?? blamed);
  const reported = isReported(run); // it has no outputs here, and nothing to retry
  const tab: Tab =
    tabs.find((each) => each === search.tab) ?? (now.status === "completed" && !reported ? "outputs" : "timeline");
  const known = chosen !== null && store.state.getState().nodes.has(chosen) ? chosen : null;
  // What a process of a pipeline writes is in the log of the step that launches it.
  const step = (known !== null && store.state.getState().nodes.get(known)?.launchedBy) || known;
  useTitle(titleOf(now));
  const below = useRef<HTMLDivElement>(null);
  // Only a run with a scattered step has items.
  const items = useStore(store.state, (state) => [...state.nodes.values()].some((node) => node.shards));
  const showLog = (node: string | null, item?: number) => {
    set({ tab: "log", ...chosenNode(node), item: item === undefined ? undefined : String(item) });
    below.current?.scrollIntoView({ block: "start" });
  };
  return (
    <>
      <RunHead store={store} away={away} error={error} />
      {broken && <Failure store={store} onLog={showLog} retry={reported ? null : <RetryButtons run={run} />} />}
      {run.engine && (
        <Suspense fallback={null}>
          <LeftOut run={{ id: run.id, status: now.status }} />
        </Suspense>
      )}
      {broken && !reported && (
        <Suspense fallback={null}>
          <KeptFolders runId={run.id} endedAt={now.finishedAt} />
        </Suspense>
      )}
      {now.status === "completed" && !reported && (
        <Suspense>
          <Results run={{ ...run, status: now.status }} />
        </Suspense>
      )}
      <div className="mb-4 grid overflow-hidden rounded-xl border bg-surface lg:grid-cols-[1fr_auto]">
        <section aria-label="Graph of the run" className="h-[20rem] min-w-0 md:h-[24rem]">
          <Suspense fallback={<Skeleton className="h-full" />}>
            <RunGraph store={store} chosen={known} onChoose={(id) => set(chosenNode(id))} />
          </Suspense>
        </section>
        {known && (
          <aside className="max-lg:border-t lg:h-[24rem] lg:w-80 lg:border-l">
            <NodePanel
              store={store}
              id={known}
              onClose={() => set(chosenNode(null))}
              onLog={() => showLog(known)}
              onItems={() => {
                set({ tab: "items" });
                below.current?.scrollIntoView({ block: "start" });
              }}
            />
          </aside>
        )}
      </div>
      <div ref={below}>
        <Tabs
          label="About this run"
          value={tab}
          onChange={(next) => set({ tab: next })}
          tabs={tabs
            .filter((each) => each !== "items" || items || tab === "items")
            .filter((each) => !reported || (each !== "outputs" && each !== "compare"))
            .map((each) => ({ value: each, label: labels[each] }))}
        >
          <TabPanel value="timeline" className="pt-4">
            <Timeline store={store} chosen={known} onChoose={(id) => set(chosenNode(id))} />
          </TabPanel>
          <TabPanel value="items" className="pt-4">
            <Suspense fallback={<SkeletonRows />}>
              <Items store={store} node={known} onNode={(id) => set(chosenNode(id))} onLog={showLog} />
            </Suspense>
          </TabPanel>
          <TabPanel value="log" className="pt-4">
            <LogView
              store={store}
              node={step}
              onNode={(id) => set(chosenNode(id))}
              item={Math.max(0, Math.floor(Number(search.item)) || 0)}
              onItem={(item) => set({ item: String(item), line: undefined, byte: undefined })}
              words={search.q ?? ""}
              onWords={(words) => set({ q: words || undefined })}
              target={targetOf(search)}
              onTarget={(target) =>
                set({
                  node: known ?? "none", // without it the address opens the log of a step that fails later
                  line: "line" in target ? String(target.line) : undefined,
                  byte: "byte" in target ? String(target.byte) : undefined,
                })
              }
            />
          </TabPanel>
          <TabPanel value="outputs" className="pt-4">
            {run.outputTo && (
              <div className="mb-4">
                <CopyState runId={run.id} first={run.outputTo} />
              </div>
            )}
            <Outputs run={{ id: run.id, status: now.status, nodes: run.nodes }} node={step} />
          </TabPanel>
          <TabPanel value="events" className="pt-4">
            <Events store={store} node={known} />
          </TabPanel>
          <TabPanel value="resources" className="pt-4">
            <Resources store={store} />
          </TabPanel>
          <TabPanel value="compare" className="pt-4">
            <Compare run={run} />
          </TabPanel>
          <TabPanel value="details" className="pt-4">
            <Details run={run} />
          </TabPanel>
        </Tabs>
      </div>
      <p className="mt-6 text-[13px] text-muted">
        <Link to="/runs" className="underline">
          All runs
        </Link>
      </p>
    </>
  );
}

/** chosenNode chooses a step, or the whole run. An item or a line of another log means nothing in its log. */
function chosenNode(node: string | null) {
  return { node: node ?? "none", item: undefined, line: undefined, byte: undefined };
}

/** targetOf is the log line that the address leads to. */
function targetOf({ line, byte }: { line?: string; byte?: string }): LogTarget | null {
  if (line !== undefined) return { line: Math.max(1, Math.floor(Number(line)) || 1) };
  return byte === undefined ? null : { byte: Math.max(0, Number(byte) || 0) };
}

const signs: Partial<Record<Run["status"], string>> = { completed: "✓", failed: "✗", cancelled: "⊘", interrupted: "!" };

/** titleOf is the title of the browser tab: the run's state and name. */
function titleOf(run: Pick<Run, "status" | "progressPercent" | "workflowName" | "number" | "name">): string {
  const state =
    signs[run.status] ?? (run.status === "running" ? `${Math.floor(run.progressPercent)}%` : looks[run.status].word);
  return `${state} ${runTitle(run)}`;
}
