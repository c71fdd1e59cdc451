import { queryOptions } from "@tanstack/react-query";
import { type Api, ask, once, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";
import type { Role } from "./access.ts";

export type Member = Schemas["Member"];
export type TeamInvitation = Schemas["TeamInvitation"];

export type InvitedRole = Exclude<Role, "owner">;

export const membersQuery = (team: string) =>
  queryOptions({
    queryKey: ["members", team],
    queryFn: ({ client }) => ask(apiOf(client).GET("/auth/teams/{id}/members", { params: { path: { id: team } } })),
  });

/** invite asks somebody into a team. Owners are not invited here: they are made of those who have come. */
export function invite(api: Api, team: string, email: string, role: InvitedRole) {
  if (role === "viewer") {
    return ask(api.POST("/auth/teams/{id}/invitations", { params: { path: { id: team } }, body: { email, role } }));
  }
  return ask(api.POST("/api/team/invite", { params: { header: once() }, body: { email, role } }));
}

/** inviteList asks everybody of a list into the team. The same list again invites nobody twice. */
export function inviteList(api: Api, list: string, role: InvitedRole) {
  return ask(api.POST("/api/team/invitations", { body: { list, role } }));
}

/** sendVerification asks for another mail that proves one's own address. */
export function sendVerification(api: Api) {
  return ask(api.POST("/auth/verify", { body: {} }));
}

export function changeRole(api: Api, id: string, userId: string, role: Role) {
  return ask(api.PATCH("/auth/teams/{id}/members/{userId}", { params: { path: { id, userId } }, body: { role } }));
}

export function removeMember(api: Api, id: string, userId: string) {
  return ask(api.DELETE("/auth/teams/{id}/members/{userId}", { params: { path: { id, userId } } }));
}

export function resendInvitation(api: Api, id: string, invId: string) {
  return ask(api.POST("/auth/teams/{id}/invitations/{invId}/resend", { params: { path: { id, invId } } }));
}

export function revokeInvitation(api: Api, id: string, invId: string) {
  return ask(api.DELETE("/auth/teams/{id}/invitations/{invId}", { params: { path: { id, invId } } }));
}

export function leaveTeam(api: Api, id: string) {
  return ask(api.POST("/auth/teams/{id}/leave", { params: { path: { id } } }));
}

export function renameTeam(api: Api, id: string, name: string) {
  return ask(api.PATCH("/auth/teams/{id}", { params: { path: { id } }, body: { name } }));
}
