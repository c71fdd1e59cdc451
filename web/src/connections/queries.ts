import { queryOptions } from "@tanstack/react-query";
import { type Api, ask, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";

export type Connection = Schemas["Connection"];
export type NewConnection = Schemas["NewConnection"];

export const connectionsQuery = queryOptions({
  queryKey: ["connections"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/connections")),
});

export function createConnection(api: Api, body: NewConnection) {
  return ask(api.POST("/api/connections", { body }));
}

export function testConnection(api: Api, id: string) {
  return ask(api.POST("/api/connections/{id}/test", { params: { path: { id } } }));
}

export function deleteConnection(api: Api, id: string) {
  return ask(api.DELETE("/api/connections/{id}", { params: { path: { id } } }));
}
