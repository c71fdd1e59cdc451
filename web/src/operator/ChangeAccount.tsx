import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Api } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { ConfirmDialog } from "../ui/Dialog.tsx";
import { toast } from "../ui/toast.ts";
import { deleteAccount, resetSecondFactor, resumeAccount, suspendAccount } from "./actions.ts";
import type { Account } from "./queries.ts";

export type AccountAction = "suspend" | "resume" | "reset" | "delete";

interface Words {
  title: string;
  button: string;
  done: string;
  failed: string;
  danger: boolean;
  act: (api: Api, id: string) => Promise<unknown>;
  explained: ReactNode;
}

const actions: Record<AccountAction, Words> = {
  suspend: {
    title: "Suspend",
    button: "Suspend account",
    done: "is suspended",
    failed: "Couldn't suspend the account",
    danger: true,
    act: suspendAccount,
    explained:
      "They are signed out everywhere within seconds and can't sign in until you resume the account. Their tokens and connected apps end, and their schedules are paused. Active runs continue.",
  },
  resume: {
    title: "Resume",
    button: "Resume account",
    done: "can sign in again",
    failed: "Couldn't resume the account",
    danger: false,
    act: resumeAccount,
    explained:
      "They can sign in again. Their tokens stay ended, and their schedules stay paused until somebody resumes them.",
  },
  reset: {
    title: "Reset the second factor of",
    button: "Reset second factor",
    done: "signs in without a second factor",
    failed: "Couldn't reset the second factor",
    danger: true,
    act: resetSecondFactor,
    explained:
      "They sign in without a code until they set up two-factor authentication again. Make sure that the request comes from them.",
  },
  delete: {
    title: "Delete",
    button: "Delete account",
    done: "has no account any more",
    failed: "Couldn't delete the account",
    danger: true,
    act: deleteAccount,
    explained: (
      <>
        This can't be undone. The teams that nobody else belongs to are erased with their workflows, runs and files. In
        other teams, what this person created stays, with their name.
      </>
    ),
  },
};

interface ChangeAccountProps {
  account: Account;
  action: AccountAction;
  onClose: () => void;
}

/** ChangeAccount asks before it changes somebody's account, and says why it could not. */
export function ChangeAccount({ account, action, onClose }: ChangeAccountProps) {
  const api = useApi();
  const client = useQueryClient();
  const words = actions[action];
  const change = useMutation({
    mutationFn: () => words.act(api, account.id),
    onSuccess: () => {
      toast.ok(`${account.name} ${words.done}`);
      onClose();
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["operator"] }),
    meta: { shown: true },
  });
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={`${words.title} ${account.name}?`}
      action={words.button}
      danger={words.danger}
      {...(action === "delete" && {
        phrase: account.email,
        phraseLabel: `To confirm, type ${account.email}`,
      })}
      busy={change.isPending}
      onConfirm={() => change.mutate()}
    >
      <p className="wrap-anywhere">
        {account.name}, {account.email}
      </p>
      <p>{words.explained}</p>
      {change.error && <Problem title={words.failed} error={change.error} />}
    </ConfirmDialog>
  );
}
