import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useApi } from "../api/team.ts";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { toast } from "../ui/toast.ts";
import { sendVerification } from "./members.ts";
import { useMe, useMissing } from "./queries.ts";

/** Unverified tells who has not confirmed their email address what follows from that, and nobody else anything. */
export function Unverified({ children }: { children: ReactNode }) {
  const api = useApi();
  const me = useMe();
  const client = useQueryClient();
  const noMail = useMissing("mail");
  const send = useMutation({
    mutationFn: () => sendVerification(api),
    onSuccess: async ({ sent }) => {
      if (sent)
        toast.ok(noMail ? "Ask the operator for the new link." : `Email sent to ${me.email}. Open the link in it.`);
      else await client.invalidateQueries({ queryKey: ["me"] });
    },
  });
  if (me.emailVerified) return null;
  return (
    <Notice
      tone="info"
      title="Confirm your email address"
      className="mb-6"
      actions={
        <Button size="sm" busy={send.isPending} onClick={() => send.mutate()}>
          {noMail ? "Create a new link" : "Resend email"}
        </Button>
      }
    >
      {noMail
        ? "This server sends no email: ask its operator for the confirmation link."
        : `Open the link that was sent to ${me.email}.`}{" "}
      {children}
    </Notice>
  );
}
