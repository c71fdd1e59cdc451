import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Problem } from "../app/ErrorPage.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Choice, Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { toast } from "../ui/toast.ts";
import { invite, renameTeam } from "./members.ts";
import { useMe } from "./queries.ts";

export function InviteDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<"member" | "admin">("member");
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: () => invite(email.trim(), role),
    onSuccess: async () => {
      toast.ok(`Invited ${email.trim()}`);
      setEmail("");
      onOpenChange(false);
      await client.invalidateQueries({ queryKey: ["members"] });
    },
    meta: { shown: true },
  });
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title="Invite somebody"
      description="They get a mail with a link, and join once they accept."
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
          Send the invitation
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
