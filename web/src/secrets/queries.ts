import { queryOptions } from "@tanstack/react-query";
import { type Api, ask, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";

export type Secret = Schemas["Secret"];

export const secretsQuery = queryOptions({
  queryKey: ["secrets"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/secrets")),
});

export function putSecret(api: Api, name: string, value: string) {
  return ask(api.PUT("/api/secrets/{name}", { params: { path: { name } }, body: { value } }));
}

export function deleteSecret(api: Api, name: string) {
  return ask(api.DELETE("/api/secrets/{name}", { params: { path: { name } } }));
}
