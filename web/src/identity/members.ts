import { queryOptions } from "@tanstack/react-query";
import { api, ask, once, type Schemas } from "../api/client.ts";
import type { Role } from "./access.ts";

export type Member = Schemas["Member"];
export type TeamInvitation = Schemas["TeamInvitation"];

export type InvitedRole = Exclude<Role, "owner">;

export const membersQuery = (team: string) =>
  queryOptions({
    queryKey: ["members", team],
    queryFn: () => ask(api.GET("/auth/teams/{id}/members", { params: { path: { id: team } } })),
  });

/** invite asks somebody into a team. Owners are not invited here: they are made of those who have come. */
export function invite(team: string, email: string, role: InvitedRole) {
  if (role === "viewer") {
    return ask(api.POST("/auth/teams/{id}/invitations", { params: { path: { id: team } }, body: { email, role } }));
  }
  return ask(api.POST("/api/team/invite", { params: { header: once() }, body: { email, role } }));
}

/** sendVerification asks for another mail that proves one's own address. */
export function sendVerification() {
  return ask(api.POST("/auth/verify", { body: {} }));
}

export function changeRole(id: string, userId: string, role: Role) {
  return ask(api.PATCH("/auth/teams/{id}/members/{userId}", { params: { path: { id, userId } }, body: { role } }));
}

export function removeMember(id: string, userId: string) {
  return ask(api.DELETE("/auth/teams/{id}/members/{userId}", { params: { path: { id, userId } } }));
}

export function resendInvitation(id: string, invId: string) {
  return ask(api.POST("/auth/teams/{id}/invitations/{invId}/resend", { params: { path: { id, invId } } }));
}

export function revokeInvitation(id: string, invId: string) {
  return ask(api.DELETE("/auth/teams/{id}/invitations/{invId}", { params: { path: { id, invId } } }));
}

export function leaveTeam(id: string) {
  return ask(api.POST("/auth/teams/{id}/leave", { params: { path: { id } } }));
}

export function renameTeam(id: string, name: string) {
  return ask(api.PATCH("/auth/teams/{id}", { params: { path: { id } }, body: { name } }));
}
