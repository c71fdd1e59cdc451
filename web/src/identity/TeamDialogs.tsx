import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Problem } from "../app/ErrorPage.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Choice, Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Notice } from "../ui/Notice.tsx";
import { toast } from "../ui/toast.ts";
import { invite, renameTeam } from "./members.ts";
import { useMe } from "./queries.ts";

export function InviteDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const me = useMe();
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<"member" | "admin">("member");
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: () => invite(email.trim(), role),
    onSuccess: async ({ mailed }) => {
      if (mailed) {
        toast.ok(`Invited ${email.trim()}`);
        close(false);
      }
      await client.invalidateQueries({ queryKey: ["members"] });
    },
    meta: { shown: true },
  });
  const close = (stays: boolean) => {
    if (!stays) {
      setEmail("");
      send.reset();
    }
    onOpenChange(stays);
  };
  const link = send.data?.mailed ? undefined : send.data?.link;
  if (link) {
    return (
      <Dialog open={open} onOpenChange={close} title="Send them this link">
        <div className="space-y-3">
          <Notice tone="info" title="No mail was sent">
            That takes a confirmed address of your own. The link works for {send.data?.email} alone, and is shown only
            now.
          </Notice>
          <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
            <code className="min-w-0 flex-1 break-all">{link}</code>
            <Copy text={link} label="Copy the link" />
          </div>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog
      open={open}
      onOpenChange={close}
      title="Invite somebody"
      description={
        me.emailVerified
          ? "They get a mail with a link, and join once they accept."
          : "You get a link to send them, and they join once they accept."
      }
    >
      <Form onSubmit={() => send.mutate()}>
        <Field label="E-mail">
          <Input type="email" value={email} onChange={(event) => setEmail(event.target.value)} required autoFocus />
        </Field>
        <Field
          label="Role"
          hint={role === "admin" ? "Also manages people, sharing and billing." : "Builds and runs workflows."}
        >
          <Choice options={{ member: "Member", admin: "Admin" }} value={role} onChange={setRole} />
        </Field>
        {send.error && <Problem error={send.error} />}
        <Button type="submit" look="primary" busy={send.isPending}>
          {me.emailVerified ? "Send the invitation" : "Make the invitation"}
        </Button>
      </Form>
    </Dialog>
  );
}

export function RenameDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const { team } = useMe();
  const client = useQueryClient();
  const [name, setName] = useState(team.name);
  const rename = useMutation({
    mutationFn: () => renameTeam(team.id, name.trim()),
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
    <Dialog open={open} onOpenChange={onOpenChange} title="Rename the team">
      <Form onSubmit={() => rename.mutate()}>
        <Field label="Name">
          <Input value={name} onChange={(event) => setName(event.target.value)} required maxLength={200} autoFocus />
        </Field>
        {rename.error && <Problem error={rename.error} />}
        <Button type="submit" look="primary" busy={rename.isPending}>
          Rename
        </Button>
      </Form>
    </Dialog>
  );
}
