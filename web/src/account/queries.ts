import { queryOptions } from "@tanstack/react-query";
import { type Api, ask, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";

export const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/auth/sessions")),
});

export function revokeSession(api: Api, id: string) {
  return ask(api.DELETE("/auth/sessions/{id}", { params: { path: { id } } }));
}

export const appsQuery = queryOptions({
  queryKey: ["apps"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/auth/apps")),
});

export function revokeApp(api: Api, id: string) {
  return ask(api.DELETE("/auth/apps/{id}", { params: { path: { id } } }));
}

export const tokensQuery = queryOptions({
  queryKey: ["tokens"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/auth/api-tokens")),
});

/** createToken makes a token for this tab's team. */
export function createToken(api: Api, body: Schemas["NewAPIToken"]) {
  return ask(api.POST("/auth/api-tokens", { body }));
}

export function revokeToken(api: Api, id: string) {
  return ask(api.DELETE("/auth/api-tokens", { params: { query: { id } } }));
}

export function changePassword(api: Api, currentPassword: string, newPassword: string) {
  return ask(api.POST("/auth/password", { body: { currentPassword, newPassword } }));
}

export const secondFactorQuery = queryOptions({
  queryKey: ["second factor"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/auth/second-factor")),
});

export function changeSecondFactor(api: Api, body: Schemas["SecondFactorChange"]) {
  return ask(api.POST("/auth/second-factor", { body }));
}

export function eraseTeam(api: Api, team: string) {
  return ask(api.DELETE("/api/account/data", { body: { confirm: team } }));
}

export function deleteMe(api: Api, id: string) {
  return ask(api.DELETE("/api/me", { body: { confirm: id } }));
}
