import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { type Api, ask, askPage, bare, type Schemas } from "../api/client.ts";
import { isFailure } from "../api/failure.ts";
import { apiOf } from "../api/team.ts";
import { active } from "../page/status.tsx";

export type RunRow = Schemas["RunRow"];
export type Run = Schemas["Run"];
export type RunNode = Schemas["RunNode"];
export type RunEvent = Schemas["RunEvent"];

/** isReported tells whether another engine executes the whole run: it cannot be started or retried here. */
export const isReported = (run: Pick<Run, "kind">): boolean => run.kind === "reported";

export interface RunFilter {
  status?: Schemas["RunStatus"];
  workflowId?: string;
  since?: string;
  tag?: string;
  startedBy?: string;
  favorite?: boolean;
  q?: string;
}

/** runsQuery reads the newest 50 runs. It polls more often while a run is active. */
export const runsQuery = (filter: RunFilter = {}) =>
  queryOptions({
    queryKey: ["runs", filter],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/runs", { params: { query: filter } })),
    placeholderData: keepPreviousData,
    refetchInterval: (query) => (query.state.data?.some((run) => active(run.status)) ? 4000 : 30_000),
  });

/** pageOfRuns reads one page of runs and the cursor of the next. */
export function pageOfRuns(api: Api, filter: RunFilter, cursor?: string) {
  return askPage(api.GET("/api/runs", { params: { query: { ...filter, ...(cursor && { cursor }) } } }));
}

/** filtersQuery reads the caller's saved filters. */
export const filtersQuery = queryOptions({
  queryKey: ["run filters"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/me/filters")),
});

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: ["run", id],
    queryFn: ({ client }) => bare(apiOf(client).GET("/api/runs/{id}", { params: { path: { id } } })),
  });

export function cancelRun(api: Api, id: string) {
  return ask(api.POST("/api/runs/{id}/cancel", { params: { path: { id } } }));
}

/**
 * outputsQuery reads the outputs of a run, those of all its steps, or of one. Their addresses work for a quarter
 * of an hour. The server checks each file before it answers, so that thousands are asked for in pages.
 */
export const outputsQuery = (id: string, status: string, all: boolean, node: string | null = null) =>
  queryOptions({
    queryKey: ["outputs", id, status, all, node],
    queryFn: async ({ client }) => {
      const list: Schemas["Output"][] = [];
      let cursor: string | null = null;
      do {
        const query = { all, limit: 1000, ...(node !== null && { nodeId: node }), ...(cursor !== null && { cursor }) };
        const page: { rows: Schemas["Output"][]; next: string | null } = await askPage(
          apiOf(client).GET("/api/runs/{id}/outputs", { params: { path: { id }, query } }),
        );
        list.push(...page.rows);
        cursor = page.next;
      } while (cursor !== null);
      return list;
    },
    staleTime: 10 * 60_000,
    refetchInterval: (query) => {
      if (isFailure(query.state.error, "outputs_verifying")) return 5_000;
      return status === "running" ? 10_000 : 12 * 60_000;
    },
  });
