import { queryOptions } from "@tanstack/react-query";
import { type Api, ask, askPage, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";

export type Notification = Schemas["Notification"];
export type Choice = Schemas["NotificationChoice"];

export const unreadQuery = queryOptions({
  queryKey: ["notifications", "unread"],
  queryFn: async ({ client }) =>
    (await ask(apiOf(client).GET("/api/notifications", { params: { query: { unread: true, limit: 1 } } }))).unread,
  refetchInterval: 15_000,
});

export async function pageOfNotifications(api: Api, cursor?: string) {
  const page = await askPage(api.GET("/api/notifications", { params: { query: { ...(cursor && { cursor }) } } }));
  return { rows: page.rows.notifications, next: page.next };
}

export const choicesQuery = queryOptions({
  queryKey: ["notifications", "choices"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/me/notifications")),
});

export function choose(api: Api, choice: Choice) {
  return ask(api.PUT("/api/me/notifications", { body: { topics: [choice] } }));
}

export function markRead(api: Api, what: { ids: string[] } | { all: true }) {
  return ask(api.PUT("/api/notifications", { body: what }));
}
