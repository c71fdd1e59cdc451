import { queryOptions } from "@tanstack/react-query";
import { type Api, ask, askPage, once, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";
import { active } from "../page/status.tsx";

export type WorkflowRow = Schemas["WorkflowRow"];
export type Workflow = Schemas["Workflow"];
export type Definition = Schemas["Definition"];

/** workflowsQuery is all of the team's workflows, without their definitions. */
export const workflowsQuery = queryOptions({
  queryKey: ["workflows"],
  queryFn: async ({ client }) => {
    const all: WorkflowRow[] = [];
    let cursor: string | null = null;
    do {
      const query: { cursor?: string } = cursor ? { cursor } : {};
      const page: { rows: WorkflowRow[]; next: string | null } = await askPage(
        apiOf(client).GET("/api/workflows", { params: { query } }),
      );
      all.push(...page.rows);
      cursor = page.next;
    } while (cursor);
    return all;
  },
  refetchInterval: (query) =>
    query.state.data?.some((row) => row.lastRuns.some((run) => active(run.status))) ? 5000 : 30_000,
});

export const workflowQuery = (id: string) =>
  queryOptions({
    queryKey: ["workflow", id],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/workflows/{id}", { params: { path: { id } } })),
  });

export interface NewWorkflow {
  name: string;
  description?: string;
  license?: string;
  definition?: Definition;
}

export function createWorkflow(api: Api, { name, description = "", license = "", definition }: NewWorkflow) {
  return ask(
    api.POST("/api/workflows", {
      params: { header: once() },
      body: {
        name: name.slice(0, 200),
        description: description.slice(0, 10_000),
        license,
        ...(definition && { definition }),
      },
    }),
  );
}

export function deleteWorkflow(api: Api, id: string) {
  return ask(api.DELETE("/api/workflows/{id}", { params: { path: { id } } }));
}

/** startRun starts a run with a key, so that a second click starts no second one. */
export function startRun(api: Api, body: Schemas["StartRun"]) {
  return ask(api.POST("/api/runs", { params: { header: once() }, body }));
}
