import { queryOptions } from "@tanstack/react-query";
import { api, ask, once, type Schemas } from "../api/client.ts";

export type Invite = Schemas["CollabInvite"];
export type Joined = Schemas["Joined"];

export const invitesQuery = (workflowId: string) =>
  queryOptions({
    queryKey: ["invites", workflowId],
    queryFn: () => ask(api.GET("/api/collab/invites", { params: { query: { workflowId } } })),
  });

export function createInvite(body: Schemas["NewCollabInvite"]) {
  return ask(api.POST("/api/collab/invites", { params: { header: once() }, body }));
}

export function revokeInvite(id: string) {
  return ask(api.DELETE("/api/collab/invites", { params: { query: { id } } }));
}

export function join(invite: string, name: string) {
  return ask(api.POST("/api/collab/join", { body: { invite, ...(name && { name }) } }));
}
