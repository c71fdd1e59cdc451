import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, ask, askPage, bare, type Schemas } from "../api/client.ts";
import { active } from "../page/status.tsx";

export type RunRow = Schemas["RunRow"];

export interface RunFilter {
  status?: Schemas["RunStatus"];
  workflowId?: string;
  since?: string;
  tag?: string;
  startedBy?: string;
  favorite?: boolean;
  q?: string;
}

/** runsQuery is the newest 50 runs; it asks often while something goes on. */
export const runsQuery = (filter: RunFilter = {}) =>
  queryOptions({
    queryKey: ["runs", filter],
    queryFn: () => ask(api.GET("/api/runs", { params: { query: filter } })),
    placeholderData: keepPreviousData,
    refetchInterval: (query) => (query.state.data?.some((run) => active(run.status)) ? 4000 : 30_000),
  });

/** pageOfRuns is one page, with where the list goes on. */
export function pageOfRuns(filter: RunFilter, cursor?: string) {
  return askPage(api.GET("/api/runs", { params: { query: { ...filter, ...(cursor && { cursor }) } } }));
}

/** filtersQuery is the filters that the caller keeps. */
export const filtersQuery = queryOptions({
  queryKey: ["run filters"],
  queryFn: () => ask(api.GET("/api/me/filters")),
});

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: ["run", id],
    queryFn: () => bare(api.GET("/api/runs/{id}", { params: { path: { id } } })),
  });

export function cancelRun(id: string) {
  return ask(api.POST("/api/runs/{id}/cancel", { params: { path: { id } } }));
}

/**
 * outputsQuery is the files that a run hands out, those of all its steps, or of one. Their addresses work for a quarter
 * of an hour. The server checks each file before it answers, so that thousands are asked for in pages.
 */
export const outputsQuery = (id: string, status: string, all: boolean, node: string | null = null) =>
  queryOptions({
    queryKey: ["outputs", id, status, all, node],
    queryFn: async () => {
      const list: Schemas["Output"][] = [];
      let cursor: string | null = null;
      do {
        const query = { all, limit: 1000, ...(node !== null && { nodeId: node }), ...(cursor !== null && { cursor }) };
        const page: { rows: Schemas["Output"][]; next: string | null } = await askPage(
          api.GET("/api/runs/{id}/outputs", { params: { path: { id }, query } }),
        );
        list.push(...page.rows);
        cursor = page.next;
      } while (cursor !== null);
      return list;
    },
    staleTime: 10 * 60_000,
    refetchInterval: status === "running" ? 10_000 : 12 * 60_000,
  });
