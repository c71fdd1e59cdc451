import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client.ts";

export const sessionsQuery = queryOptions({ queryKey: ["sessions"], queryFn: () => ask(api.GET("/auth/sessions")) });

export function revokeSession(id: string) {
  return ask(api.DELETE("/auth/sessions/{id}", { params: { path: { id } } }));
}

export const appsQuery = queryOptions({ queryKey: ["apps"], queryFn: () => ask(api.GET("/auth/apps")) });

export function revokeApp(id: string) {
  return ask(api.DELETE("/auth/apps/{id}", { params: { path: { id } } }));
}

export const tokensQuery = queryOptions({ queryKey: ["tokens"], queryFn: () => ask(api.GET("/auth/api-tokens")) });

/** createToken makes a token for this tab's team. */
export function createToken(body: Schemas["NewAPIToken"]) {
  return ask(api.POST("/auth/api-tokens", { body }));
}

export function revokeToken(id: string) {
  return ask(api.DELETE("/auth/api-tokens", { params: { query: { id } } }));
}

export function changePassword(currentPassword: string, newPassword: string) {
  return ask(api.POST("/auth/password", { body: { currentPassword, newPassword } }));
}

export function changeSecondFactor(body: Schemas["SecondFactorChange"]) {
  return ask(api.POST("/auth/second-factor", { body }));
}

export function eraseTeam(team: string) {
  return ask(api.DELETE("/api/account/data", { body: { confirm: team } }));
}
