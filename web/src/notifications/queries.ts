import { queryOptions } from "@tanstack/react-query";
import { api, ask, askPage, type Schemas } from "../api/client.ts";

export type Notification = Schemas["Notification"];
export type Choice = Schemas["NotificationChoice"];

export const unreadQuery = queryOptions({
  queryKey: ["notifications", "unread"],
  queryFn: async () =>
    (await ask(api.GET("/api/notifications", { params: { query: { unread: true, limit: 1 } } }))).unread,
  refetchInterval: 15_000,
});

export async function pageOfNotifications(cursor?: string) {
  const page = await askPage(api.GET("/api/notifications", { params: { query: { ...(cursor && { cursor }) } } }));
  return { rows: page.rows.notifications, next: page.next };
}

export const choicesQuery = queryOptions({
  queryKey: ["notifications", "choices"],
  queryFn: () => ask(api.GET("/api/me/notifications")),
});

export function choose(choice: Choice) {
  return ask(api.PUT("/api/me/notifications", { body: { topics: [choice] } }));
}

export function markRead(what: { ids: string[] } | { all: true }) {
  return ask(api.PUT("/api/notifications", { body: what }));
}
