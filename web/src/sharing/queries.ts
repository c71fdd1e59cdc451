import { queryOptions } from "@tanstack/react-query";
import { type Api, ask, once, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";

export type Invite = Schemas["CollabInvite"];
export type Joined = Schemas["Joined"];

export const invitesQuery = (workflowId: string) =>
  queryOptions({
    queryKey: ["invites", workflowId],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/collab/invites", { params: { query: { workflowId } } })),
  });

export function createInvite(api: Api, body: Schemas["NewCollabInvite"]) {
  return ask(api.POST("/api/collab/invites", { params: { header: once() }, body }));
}

export function revokeInvite(api: Api, id: string) {
  return ask(api.DELETE("/api/collab/invites", { params: { query: { id } } }));
}

export function join(api: Api, invite: string, name: string) {
  return ask(api.POST("/api/collab/join", { body: { invite, ...(name && { name }) } }));
}
