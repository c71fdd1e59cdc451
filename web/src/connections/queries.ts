import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client.ts";

export type Connection = Schemas["Connection"];
export type NewConnection = Schemas["NewConnection"];

export const connectionsQuery = queryOptions({
  queryKey: ["connections"],
  queryFn: () => ask(api.GET("/api/connections")),
});

export function createConnection(body: NewConnection) {
  return ask(api.POST("/api/connections", { body }));
}

export function testConnection(id: string) {
  return ask(api.POST("/api/connections/{id}/test", { params: { path: { id } } }));
}

export function deleteConnection(id: string) {
  return ask(api.DELETE("/api/connections/{id}", { params: { path: { id } } }));
}
