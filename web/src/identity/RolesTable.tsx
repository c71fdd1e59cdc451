import { Check, Minus } from "lucide-react";
import { classes } from "../ui/classes.ts";
import { Table, Td, Th } from "../ui/Table.tsx";
import { type Action, may, type Role } from "./access.ts";
import { useMissing } from "./queries.ts";

const columns: Role[] = ["owner", "admin", "member", "viewer"];

const rows: { text: string; action: Action | null; note?: Partial<Record<Role, string>> }[] = [
  { text: "See workflows, runs, files and usage; analyze papers; chat", action: null },
  { text: "Create and edit workflows, upload files, start runs", action: "edit workflows" },
  { text: "Cancel runs; delete workflows and files", action: "delete any workflow", note: { member: "their own" } },
  {
    text: "Share links, invitations, other people's roles",
    action: "manage members",
    note: { admin: "except owners" },
  },
  { text: "Use the team's secrets in steps, by name", action: "use secrets" },
  { text: "Set and delete secrets; service accounts; the audit log", action: "manage secrets" },
  { text: "Browse and use connections", action: "use connections" },
  { text: "Create and delete connections", action: "manage connections" },
  { text: "Top-ups and invoices", action: "manage billing" },
  { text: "Export team data", action: "export the team" },
  { text: "Erase team data", action: "erase the team" },
];

/** RolesTable says in words what each role may do. */
export function RolesTable({ mine }: { mine: Role }) {
  const free = useMissing("billing");
  const shown = free ? rows.filter(({ action }) => action !== "manage billing") : rows;
  return (
    <Table
      label="Roles"
      head={
        <>
          <Th>Permission</Th>
          {columns.map((role) => (
            <Th
              key={role}
              className={classes("text-center max-md:px-1 max-md:whitespace-normal", role === mine && "text-accent")}
            >
              {role}
              {role === mine && " (you)"}
            </Th>
          ))}
        </>
      }
    >
      {shown.map(({ text, action, note }) => (
        <tr key={text}>
          <Td className="md:min-w-56">{text}</Td>
          {columns.map((role) => {
            const allowed = action === null || may(role, action);
            return (
              <Td key={role} className="text-center text-[13px] max-md:px-1 md:whitespace-nowrap">
                {allowed ? (
                  <Check className="mx-auto size-4 text-ok" aria-label="yes" />
                ) : (
                  note?.[role] === undefined && <Minus className="mx-auto size-4 text-muted" aria-label="no" />
                )}
                {note?.[role] && <span className="text-muted">{note[role]}</span>}
              </Td>
            );
          })}
        </tr>
      ))}
    </Table>
  );
}
