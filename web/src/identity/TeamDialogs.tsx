import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Choice, Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Notice } from "../ui/Notice.tsx";
import { toast } from "../ui/toast.ts";
import { type InvitedRole, invite, renameTeam, type TeamInvitation } from "./members.ts";
import { useMe, useMissing } from "./queries.ts";

const roleHints: Record<InvitedRole, string> = {
  viewer: "Can view workflows, runs and files.",
  member: "Can build and run workflows.",
  admin: "Can also manage members, sharing and billing.",
};

export function InviteDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const api = useApi();
  const me = useMe();
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<InvitedRole>("member");
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: () => invite(api, me.team.id, email.trim(), role),
    onSuccess: async ({ link }) => {
      if (!link) {
        toast.ok(`Invited ${email.trim()}`);
        close(false);
      }
      await client.invalidateQueries({ queryKey: ["members"] });
    },
    meta: { shown: true },
  });
  const sends = !useMissing("mail") && me.emailVerified;
  const close = (stays: boolean) => {
    if (!stays) {
      setEmail("");
      send.reset();
    }
    onOpenChange(stays);
  };
  if (send.data?.link) return <Invited invitation={send.data} link={send.data.link} open={open} onOpenChange={close} />;
  return (
    <Dialog
      open={open}
      onOpenChange={close}
      title="Invite someone"
      description={sends ? "They get an email with a link to join." : "You get a link to send them."}
    >
      <Form onSubmit={() => send.mutate()}>
        <Field label="Email">
          <Input type="email" value={email} onChange={(event) => setEmail(event.target.value)} required autoFocus />
        </Field>
        <Field label="Role" hint={roleHints[role]}>
          <Choice options={{ viewer: "Viewer", member: "Member", admin: "Admin" }} value={role} onChange={setRole} />
        </Field>
        {send.error && <Problem title="Couldn't invite" error={send.error} />}
        <Button type="submit" look="primary" busy={send.isPending}>
          {sends ? "Send invitation" : "Create invitation"}
        </Button>
      </Form>
    </Dialog>
  );
}

interface InvitedProps {
  invitation: TeamInvitation;
  link: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

/** Invited shows the link of an invitation that was just made, and whether a mail went out. */
function Invited({ invitation: { email, role, mailed }, link, open, onOpenChange }: InvitedProps) {
  const noMail = useMissing("mail");
  const sent = mailed && !noMail;
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={sent ? `Invited ${email}` : "Send them this link"}>
      <div className="space-y-3">
        {sent ? (
          <Notice tone="ok" title="Invitation sent">
            {email} can join as {role} with the link in the email. If it doesn't arrive, send them this link; it's shown
            only once.
          </Notice>
        ) : (
          <Notice tone="info" title="No email was sent">
            {noMail ? "This server sends no email." : "Confirm your own email address to send emails."} This link works
            only for {email}, who joins as {role}; it's shown only once.
          </Notice>
        )}
        <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
          <code className="min-w-0 flex-1 break-all">{link}</code>
          <Copy text={link} label="Copy link" />
        </div>
      </div>
    </Dialog>
  );
}

export function RenameDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const api = useApi();
  const { team } = useMe();
  const client = useQueryClient();
  const [name, setName] = useState(team.name);
  const rename = useMutation({
    mutationFn: () => renameTeam(api, team.id, name.trim()),
    onSuccess: async () => {
      onOpenChange(false);
      await Promise.all([
        client.invalidateQueries({ queryKey: ["me"] }),
        client.invalidateQueries({ queryKey: ["teams"] }),
      ]);
    },
    meta: { shown: true },
  });
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Rename team">
      <Form onSubmit={() => rename.mutate()}>
        <Field label="Name">
          <Input value={name} onChange={(event) => setName(event.target.value)} required maxLength={200} autoFocus />
        </Field>
        {rename.error && <Problem title="Couldn't rename the team" error={rename.error} />}
        <Button type="submit" look="primary" busy={rename.isPending}>
          Rename
        </Button>
      </Form>
    </Dialog>
  );
}
