import { queryOptions } from "@tanstack/react-query";
import { api, ask, raw } from "../api/client.ts";

export const sessionsQuery = queryOptions({ queryKey: ["sessions"], queryFn: () => ask(api.GET("/auth/sessions")) });

export function revokeSession(id: string) {
  return ask(api.DELETE("/auth/sessions/{id}", { params: { path: { id } } }));
}

/** App is a program that may act for its user. */
export interface App {
  id: string;
  name: string;
  allowedAt: string;
  lastUsedAt: string | null;
  grants: number;
}

export const appsQuery = queryOptions({
  queryKey: ["apps"],
  queryFn: async () => ((await (await raw("/auth/apps")).json()) as { data: App[] }).data,
});

export async function revokeApp(id: string): Promise<void> {
  await raw(`/auth/apps/${encodeURIComponent(id)}`, { method: "DELETE" });
}

export const tokensQuery = queryOptions({ queryKey: ["tokens"], queryFn: () => ask(api.GET("/auth/api-tokens")) });

export function createToken(name: string, expiresInDays: number) {
  return ask(api.POST("/auth/api-tokens", { body: { name, expiresInDays } }));
}

export function revokeToken(id: string) {
  return ask(api.DELETE("/auth/api-tokens", { params: { query: { id } } }));
}

export function changePassword(currentPassword: string, newPassword: string) {
  return ask(api.POST("/auth/password", { body: { currentPassword, newPassword } }));
}

export function eraseTeam(team: string) {
  return ask(api.DELETE("/api/account/data", { body: { confirm: team } }));
}
