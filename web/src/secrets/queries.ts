import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client.ts";

export type Secret = Schemas["Secret"];

export const secretsQuery = queryOptions({ queryKey: ["secrets"], queryFn: () => ask(api.GET("/api/secrets")) });

export function putSecret(name: string, value: string) {
  return ask(api.PUT("/api/secrets/{name}", { params: { path: { name } }, body: { value } }));
}

export function deleteSecret(name: string) {
  return ask(api.DELETE("/api/secrets/{name}", { params: { path: { name } } }));
}
