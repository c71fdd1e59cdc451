import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { type Api, ask, askPage, bare, once, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";

export type Days = 7 | 30 | 90 | 180;
export type UsageEvent = Schemas["UsageEvent"];

export const creditsQuery = queryOptions({
  queryKey: ["credits"],
  queryFn: ({ client }) => bare(apiOf(client).GET("/api/billing/credits")),
  refetchInterval: 30_000,
});

export const usageQuery = (days: Days) =>
  queryOptions({
    queryKey: ["usage", "daily", days],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/dashboard/usage", { params: { query: { days } } })),
    placeholderData: keepPreviousData,
  });

export type Grouping = "tag" | "workflow" | "user";
export type UsageGroup = Schemas["UsageGroup"];
export type Budget = Schemas["Budget"];

export const costsQuery = (days: Days, by: Grouping) =>
  queryOptions({
    queryKey: ["usage", "groups", days, by],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/dashboard/usage", { params: { query: { days, by } } })),
    placeholderData: keepPreviousData,
  });

export const budgetsQuery = queryOptions({
  queryKey: ["budgets"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/billing/budgets")),
});

export function setBudgets(api: Api, budgets: Schemas["NewBudget"][]) {
  return ask(api.PUT("/api/billing/budgets", { body: { budgets } }));
}

export function pageOfUsage(api: Api, limit: number, cursor?: string) {
  return askPage(api.GET("/api/billing/usage", { params: { query: { limit, ...(cursor && { cursor }) } } }));
}

export const invoicesQuery = queryOptions({
  queryKey: ["invoices"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/billing/invoices")),
});

export const packagesQuery = queryOptions({
  queryKey: ["packages"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/billing/topup")),
  staleTime: 5 * 60_000,
});

/** startTopUp opens a checkout; its page is somebody else's, or the sandbox. */
export function startTopUp(api: Api, packageIndex: number) {
  return ask(api.POST("/api/billing/topup", { params: { header: once() }, body: { packageIndex } }));
}
