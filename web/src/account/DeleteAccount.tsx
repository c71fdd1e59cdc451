import { useMutation, useQueries, useQuery } from "@tanstack/react-query";
import { UserX } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { membersQuery } from "../identity/members.ts";
import { teamsQuery, useMe } from "../identity/queries.ts";
import { signedOut } from "../identity/session.ts";
import { Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { ConfirmDialog } from "../ui/Dialog.tsx";
import { deleteMe } from "./queries.ts";

/** DeleteAccount deletes the account of whoever looks at it. */
export function DeleteAccount() {
  const api = useApi();
  const me = useMe();
  const [asking, setAsking] = useState(false);
  const remove = useMutation({ mutationFn: () => deleteMe(api, me.id), onSuccess: signedOut, meta: { shown: true } });
  return (
    <Section title="Delete account" intro="This can't be undone. Your email address can sign up again.">
      <Button look="danger" icon={<UserX className="size-4" aria-hidden />} onClick={() => setAsking(true)}>
        Delete account
      </Button>
      {asking && (
        <ConfirmDialog
          open
          onOpenChange={(open) => {
            remove.reset();
            setAsking(open);
          }}
          title="Delete your account?"
          action="Delete my account"
          phrase={me.id}
          phraseLabel="To confirm, type your user ID"
          busy={remove.isPending || remove.isSuccess}
          onConfirm={() => remove.mutate()}
        >
          <p>
            <strong>Deleted immediately and permanently:</strong> your sessions, tokens, connected apps, favorites and
            notifications. Your schedules are paused.
          </p>
          <ErasedTeams />
          <p>
            <strong>Kept:</strong> what you created in teams with other members, with your name.
          </p>
          <p className="flex items-center gap-1">
            User ID: <code className="rounded bg-sunken px-1.5 py-0.5 break-all select-all">{me.id}</code>{" "}
            <Copy text={me.id} label="Copy user ID" />
          </p>
          {remove.error && <Problem title="Couldn't delete the account" error={remove.error} />}
        </ConfirmDialog>
      )}
    </Section>
  );
}

/** ErasedTeams names the teams that nobody else belongs to. */
function ErasedTeams() {
  const teams = useQuery(teamsQuery);
  const list = teams.data ?? [];
  const members = useQueries({ queries: list.map((team) => ({ ...membersQuery(team.id), staleTime: 0 })) });
  const error = teams.error ?? members.find((each) => each.error)?.error;
  if (error) return <Problem title="Couldn't list your teams" error={error} />;
  if (teams.isPending || members.some((each) => each.isPending))
    return <p className="text-muted">Looking up your teams…</p>;
  const alone = list.filter((_, i) => members[i]?.data?.members.length === 1);
  if (alone.length === 0) return <p>Each of your teams has other members, so no team is erased.</p>;
  return (
    <div>
      <strong>Erased with everything in them,</strong> because nobody else belongs to them:
      <ul className="mt-1 list-disc pl-5" aria-label="Teams that are erased">
        {alone.map((team) => (
          <li key={team.id} className="wrap-anywhere">
            {team.name}
          </li>
        ))}
      </ul>
    </div>
  );
}
