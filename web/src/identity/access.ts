// Who may do what, in the words of the server's table. It only decides what
// is offered; the server decides what is done.
import type { Schemas } from "../api/client.ts";

export type Role = Schemas["Role"];

export type Action =
  | "edit workflows"
  | "delete any workflow"
  | "upload files"
  | "delete any file"
  | "start runs"
  | "cancel any run"
  | "manage sharing"
  | "manage members"
  | "manage owners"
  | "manage billing"
  | "change data retention"
  | "use connections"
  | "manage connections"
  | "use secrets"
  | "manage webhooks"
  | "manage secrets"
  | "export the team"
  | "erase the team";

const least: Record<Action, Role> = {
  "edit workflows": "member",
  "upload files": "member",
  "start runs": "member",
  "use connections": "member",
  "use secrets": "member",
  "delete any workflow": "admin",
  "delete any file": "admin",
  "cancel any run": "admin",
  "manage sharing": "admin",
  "manage members": "admin",
  "manage billing": "admin",
  "change data retention": "admin",
  "manage connections": "admin",
  "manage webhooks": "admin",
  "manage secrets": "admin",
  "export the team": "admin",
  "manage owners": "owner",
  "erase the team": "owner",
};

/** The roles, from the least to the most. */
export const roles: Role[] = ["viewer", "member", "admin", "owner"];

export function may(role: Role, action: Action): boolean {
  return roles.indexOf(role) >= roles.indexOf(least[action]);
}

/** whyNot is why a role cannot do it, for the disabled button; null when it can. */
export function whyNot(role: Role, action: Action): string | null {
  if (may(role, action)) return null;
  const who = { viewer: "", member: "members, admins and owners", admin: "admins and owners", owner: "owners" }[
    least[action]
  ];
  return `Only ${who} can ${action}. You are ${role === "owner" || role === "admin" ? "an" : "a"} ${role} of this team.`;
}
