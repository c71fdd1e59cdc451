import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { toast } from "../ui/toast.ts";
import { sendVerification } from "./members.ts";
import { useMe } from "./queries.ts";

/** Unverified tells who has not confirmed their e-mail address what follows from that, and nobody else anything. */
export function Unverified({ children }: { children: ReactNode }) {
  const me = useMe();
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: sendVerification,
    onSuccess: async ({ sent }) => {
      if (sent) toast.ok(`Email sent to ${me.email}. Open the link in it.`);
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
          Resend email
        </Button>
      }
    >
      {children}
    </Notice>
  );
}
