import { infiniteQueryOptions } from "@tanstack/react-query";
import { type Api, askPage, bare, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";
import { save } from "../ui/download.ts";

export type AuditEntry = Schemas["AuditEntry"];

export interface AuditFilter {
  actor?: string;
  action?: string;
  since?: string;
}

export const auditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ["audit", filter],
    queryFn: ({ client, pageParam }) =>
      askPage(
        apiOf(client).GET("/api/audit", { params: { query: { ...filter, ...(pageParam && { cursor: pageParam }) } } }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next ?? undefined,
  });

/** downloadAudit saves all that the filter finds. A plain link would not know which team this tab is in. */
export async function downloadAudit(api: Api, filter: AuditFilter, format: "csv" | "jsonl"): Promise<void> {
  const text = await bare(api.GET("/api/audit/export", { params: { query: { ...filter, format } }, parseAs: "text" }));
  save(`audit.${format}`, text, "text/plain");
}
