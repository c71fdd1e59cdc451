import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Cable, KeyRound, LogOut, MailPlus, Pencil, ScrollText, UserMinus, Users, Webhook } from "lucide-react";
import { useState } from "react";
import { useApi, useTeams } from "../api/team.ts";
import { Answer } from "../page/Answer.tsx";
import { Page, Section } from "../page/Page.tsx";
import { Button, IconButton } from "../ui/Button.tsx";
import { ConfirmDialog } from "../ui/Dialog.tsx";
import { Select } from "../ui/Field.tsx";
import { plural } from "../ui/format.ts";
import { Pill } from "../ui/Pill.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { Tooltip } from "../ui/Tooltip.tsx";
import { toast } from "../ui/toast.ts";
import { may, type Role } from "./access.ts";
import { InviteListDialog } from "./InviteListDialog.tsx";
import {
  changeRole,
  leaveTeam,
  type Member,
  membersQuery,
  removeMember,
  resendInvitation,
  revokeInvitation,
  type TeamInvitation,
} from "./members.ts";
import { useMe, useMissing, useWhyNot } from "./queries.ts";
import { Retention } from "./Retention.tsx";
import { RolesTable } from "./RolesTable.tsx";
import { ServiceAccounts } from "./ServiceAccounts.tsx";
import { InviteDialog, RenameDialog } from "./TeamDialogs.tsx";
import { Unverified } from "./Unverified.tsx";

export function TeamPage() {
  const me = useMe();
  const whyNot = useWhyNot()("manage members");
  const members = useQuery(membersQuery(me.team.id));
  const navigate = useNavigate();
  const [inviting, setInviting] = useState(false);
  const [invitingList, setInvitingList] = useState(false);
  const [renaming, setRenaming] = useState(false);
  return (
    <Page
      title="Team"
      intro={
        <>
          <strong className="font-medium text-ink">{me.team.name}</strong> · plan {me.team.plan} · you are{" "}
          {me.team.role === "owner" || me.team.role === "admin" ? "an" : "a"} {me.team.role}
        </>
      }
      actions={
        <>
          {may(me.team.role, "manage members") && (
            <Button
              icon={<ScrollText className="size-4" aria-hidden />}
              onClick={() => void navigate({ to: "/audit" })}
            >
              Audit log
            </Button>
          )}
          {may(me.team.role, "manage webhooks") && (
            <Button
              icon={<Webhook className="size-4" aria-hidden />}
              onClick={() => void navigate({ to: "/team/webhooks" })}
            >
              Webhooks
            </Button>
          )}
          {may(me.team.role, "use secrets") && (
            <Button
              icon={<KeyRound className="size-4" aria-hidden />}
              onClick={() => void navigate({ to: "/secrets" })}
            >
              Secrets
            </Button>
          )}
          {may(me.team.role, "use connections") && (
            <Button
              icon={<Cable className="size-4" aria-hidden />}
              onClick={() => void navigate({ to: "/connections" })}
            >
              Connections
            </Button>
          )}
          <Button
            icon={<Pencil className="size-4" aria-hidden />}
            disabledReason={whyNot}
            onClick={() => setRenaming(true)}
          >
            Rename
          </Button>
          <Button
            icon={<Users className="size-4" aria-hidden />}
            disabledReason={whyNot}
            onClick={() => setInvitingList(true)}
          >
            Invite several
          </Button>
          <Button
            look="primary"
            icon={<MailPlus className="size-4" aria-hidden />}
            disabledReason={whyNot}
            onClick={() => setInviting(true)}
          >
            Invite
          </Button>
        </>
      }
    >
      {may(me.team.role, "manage members") && (
        <Unverified>Until then, invitations aren't emailed: copy the link and send it yourself.</Unverified>
      )}
      <Answer query={members}>
        {(data) => (
          <>
            <Section title={plural(data.members.length, "member")}>
              <Members members={data.members} />
            </Section>
            {may(me.team.role, "manage members") && (
              <Section title="Pending invitations">
                {data.invitations.length === 0 ? (
                  <p className="text-sm text-muted">No pending invitations.</p>
                ) : (
                  <Invitations list={data.invitations} />
                )}
              </Section>
            )}
          </>
        )}
      </Answer>
      <Section title="Role permissions">
        <RolesTable mine={me.team.role} />
      </Section>
      <Retention />
      {may(me.team.role, "manage members") && <ServiceAccounts />}
      <Leave />
      <InviteDialog open={inviting} onOpenChange={setInviting} />
      <InviteListDialog open={invitingList} onOpenChange={setInvitingList} />
      <RenameDialog open={renaming} onOpenChange={setRenaming} />
    </Page>
  );
}

const roles: Role[] = ["owner", "admin", "member", "viewer"];

/** useTeamChange is a change of the team's people: done, told, read again. */
function useTeamChange<T>(change: (value: T) => Promise<unknown>, done: (value: T) => string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: (_answer, value) => toast.ok(done(value)),
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: ["members"] }),
        client.invalidateQueries({ queryKey: ["me"] }),
      ]),
  });
}

function Members({ members }: { members: Member[] }) {
  const api = useApi();
  const me = useMe();
  const team = me.team.id;
  const owners = members.filter((member) => member.role === "owner").length;
  const [leaving, setLeaving] = useState<Member | null>(null);
  const change = useTeamChange(
    ({ member, role }: { member: Member; role: Role }) => changeRole(api, team, member.id, role),
    ({ member, role }) => `${member.name} is now ${role}`,
  );
  const remove = useTeamChange(
    (member: Member) => removeMember(api, team, member.id).finally(() => setLeaving(null)),
    (member) => `Removed ${member.name} from the team`,
  );
  const whyNotChange = (member: Member): string | null => {
    if (!may(me.team.role, "manage members")) return "Only admins and owners can change this.";
    if (member.role === "owner" && !may(me.team.role, "manage owners")) return "Only owners can change an owner.";
    if (member.role === "owner" && owners === 1) return "A team needs an owner. Make someone else owner first.";
    return null;
  };
  return (
    <>
      <Table
        label="Members"
        head={
          <>
            <Th>Name</Th>
            <Th className="max-md:hidden">Email</Th>
            <Th>Role</Th>
            <Th className="max-md:hidden">Joined</Th>
            <Th className="w-10">
              <span className="sr-only">Actions</span>
            </Th>
          </>
        }
      >
        {members.map((member) => {
          const reason = whyNotChange(member);
          return (
            <tr key={member.id}>
              <Td className="font-medium whitespace-nowrap">
                {member.name}
                {member.id === me.id && <span className="ml-1.5 font-normal text-muted">you</span>}
                <span className="block text-[13px] font-normal text-muted md:hidden">{member.email}</span>
              </Td>
              <Td className="text-muted max-md:hidden">{member.email}</Td>
              <Td className="min-w-28 md:min-w-36">
                {reason ? (
                  <Tooltip text={reason}>
                    <span tabIndex={0}>
                      <Pill>{member.role}</Pill>
                    </span>
                  </Tooltip>
                ) : (
                  <Select
                    aria-label={`Role of ${member.name}`}
                    className="h-8!"
                    value={member.role}
                    onChange={(event) => change.mutate({ member, role: event.target.value as Role })}
                  >
                    {roles.map((role) => (
                      <option
                        key={role}
                        value={role}
                        disabled={role === "owner" && !may(me.team.role, "manage owners")}
                      >
                        {role}
                      </option>
                    ))}
                  </Select>
                )}
              </Td>
              <Td className="text-muted max-md:hidden">
                <Time at={member.joinedAt} />
              </Td>
              <Td>
                <IconButton
                  size="sm"
                  look="danger-quiet"
                  label={`Remove ${member.name}`}
                  icon={<UserMinus className="size-4" aria-hidden />}
                  disabledReason={member.id === me.id ? "To remove yourself, leave the team below." : reason}
                  onClick={() => setLeaving(member)}
                />
              </Td>
            </tr>
          );
        })}
      </Table>
      <ConfirmDialog
        open={leaving !== null}
        onOpenChange={() => setLeaving(null)}
        title={`Remove ${leaving?.name}?`}
        action="Remove member"
        busy={remove.isPending}
        onConfirm={() => leaving && remove.mutate(leaving)}
      >
        <p>They lose access immediately. What they created stays with the team.</p>
      </ConfirmDialog>
    </>
  );
}

function Invitations({ list }: { list: TeamInvitation[] }) {
  const api = useApi();
  const team = useMe().team.id;
  const noMail = useMissing("mail");
  const resend = useTeamChange(
    (each: TeamInvitation) => resendInvitation(api, team, each.id),
    (each) => `Invitation resent to ${each.email}`,
  );
  const revoke = useTeamChange(
    (each: TeamInvitation) => revokeInvitation(api, team, each.id),
    (each) => `Revoked the invitation for ${each.email}`,
  );
  return (
    <Table
      label="Invitations"
      head={
        <>
          <Th>Email</Th>
          <Th className="max-md:hidden">Role</Th>
          <Th className="max-md:hidden">Invited by</Th>
          <Th className="max-md:hidden">Expires</Th>
          <Th>
            <span className="sr-only">Actions</span>
          </Th>
        </>
      }
    >
      {list.map((each) => (
        <tr key={each.id}>
          <Td className="wrap-anywhere">
            {each.email}
            <span className="block text-[13px] text-muted md:hidden">{each.role}</span>
            {!each.mailed && <span className="block text-[13px] text-muted">not emailed</span>}
          </Td>
          <Td className="max-md:hidden">
            <Pill>{each.role}</Pill>
          </Td>
          <Td className="whitespace-nowrap max-md:hidden">{each.invitedBy.name}</Td>
          <Td className="text-muted max-md:hidden">
            <Time at={each.expiresAt} />
          </Td>
          <Td>
            <div className="flex justify-end gap-1 max-md:flex-col">
              {!noMail && (
                <Button size="sm" aria-label={`Send again to ${each.email}`} onClick={() => resend.mutate(each)}>
                  {each.mailed ? "Send again" : "Send"}
                </Button>
              )}
              <Button
                size="sm"
                look="danger-quiet"
                aria-label={`Revoke the invitation for ${each.email}`}
                onClick={() => revoke.mutate(each)}
              >
                Revoke
              </Button>
            </div>
          </Td>
        </tr>
      ))}
    </Table>
  );
}

function Leave() {
  const api = useApi();
  const teams = useTeams();
  const { team } = useMe();
  const [asking, setAsking] = useState(false);
  const leave = useMutation({
    mutationFn: () => leaveTeam(api, team.id),
    onSuccess: () => {
      teams.enter(null);
      location.assign("/workflows");
    },
    onError: () => setAsking(false),
  });
  return (
    <Section title="Leave team" intro="You lose access to its workflows, runs and files immediately.">
      <Button
        look="danger-quiet"
        className="border"
        icon={<LogOut className="size-4" aria-hidden />}
        onClick={() => setAsking(true)}
      >
        Leave {team.name}
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={`Leave ${team.name}?`}
        action="Leave team"
        busy={leave.isPending}
        onConfirm={() => leave.mutate()}
      >
        <p>What you created stays with the team. To rejoin, you need a new invitation.</p>
      </ConfirmDialog>
    </Section>
  );
}
