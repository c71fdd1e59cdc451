import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useMissing, useWhyNot } from "../identity/queries.ts";
import { type Lifetime, LifetimeField, LinkList, NewLink } from "../page/Links.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Checkbox, Choice, Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { plural } from "../ui/format.ts";
import { Notice } from "../ui/Notice.tsx";
import { createInvite, type Invite, invitesQuery, revokeInvite } from "./queries.ts";

interface ShareDialogProps {
  workflowId: string;
  workflowName: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

/** ShareDialog makes links to one workflow for people without an account, and takes them back. */
export function ShareDialog({ workflowId, workflowName, open, onOpenChange }: ShareDialogProps) {
  const whyNot = useWhyNot()("manage sharing");
  return (
    <Dialog
      wide
      open={open}
      onOpenChange={onOpenChange}
      title={`Share ${workflowName}`}
      description="Anyone with the link can open this workflow without an account, until it expires or you revoke it."
    >
      {whyNot ? (
        <Notice>{whyNot}</Notice>
      ) : (
        <div className="space-y-6">
          <LinkForm workflowId={workflowId} />
          <Links workflowId={workflowId} />
        </div>
      )}
    </Dialog>
  );
}

function LinkForm({ workflowId }: { workflowId: string }) {
  const free = useMissing("billing");
  const api = useApi();
  const [role, setRole] = useState<"viewer" | "editor">("viewer");
  const [hours, setHours] = useState<Lifetime>("168");
  const [uses, setUses] = useState("");
  const [spend, setSpend] = useState("");
  const [secrets, setSecrets] = useState(false);
  const [results, setResults] = useState(false);
  const client = useQueryClient();
  const make = useMutation({
    mutationFn: () =>
      createInvite(api, {
        workflowId,
        role,
        expiresInHours: Number(hours),
        ...(uses && { maxUses: Number(uses) }),
        ...(role === "editor" && spend && { maxCredits: Number(spend) }),
        allowSecrets: role === "editor" && secrets,
        allowResults: role === "editor" && results,
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["invites", workflowId] }),
    meta: { shown: true },
  });
  if (make.data) return <NewLink made={make.data} again={() => make.reset()} />;
  return (
    <Form onSubmit={() => make.mutate()}>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field
          label="Guests can"
          hint={role === "editor" ? "Edit with you, and start runs that your team pays for." : "View only."}
        >
          <Choice options={{ viewer: "View", editor: "Edit and run" }} value={role} onChange={setRole} />
        </Field>
        <LifetimeField value={hours} onChange={setHours} />
        <Field label="Guest limit" optional>
          <Input
            type="number"
            inputMode="numeric"
            min={1}
            max={1000}
            value={uses}
            onChange={(event) => setUses(event.target.value)}
            placeholder="unlimited"
          />
        </Field>
        {role === "editor" && !free && (
          <Field label="Spending limit (credits)" optional>
            <Input
              type="number"
              inputMode="decimal"
              min={0}
              step="any"
              value={spend}
              onChange={(event) => setSpend(event.target.value)}
              placeholder="unlimited"
            />
          </Field>
        )}
      </div>
      {role === "editor" && (
        <div className="space-y-2">
          <Checkbox
            label="Give guests a link to the results of each run they start (expires after 7 days)"
            checked={results}
            onChange={(event) => setResults(event.target.checked)}
          />
          <Checkbox
            label="Allow guests to use team secrets (they could read them)"
            checked={secrets}
            onChange={(event) => setSecrets(event.target.checked)}
          />
        </div>
      )}
      {make.error && <Problem title="Couldn't create the link" error={make.error} />}
      <Button type="submit" look="primary" busy={make.isPending}>
        Create link
      </Button>
    </Form>
  );
}

/** revocable tells whether revoking a link ends anything: of an expired one, the links to results of its guests' runs. */
function revocable({ status, allowResults }: Invite): boolean {
  return status === "active" || status === "exhausted" || (status === "expired" && allowResults);
}

function Links({ workflowId }: { workflowId: string }) {
  const api = useApi();
  const query = invitesQuery(workflowId);
  return (
    <LinkList
      links={useQuery(query)}
      queryKey={query.queryKey}
      revoke={(id) => revokeInvite(api, id)}
      revocable={revocable}
      what={({ role, allowResults }) =>
        `${role === "editor" ? "Edit and run" : "View"}${allowResults ? ", with results" : ""}`
      }
      used={({ uses, maxUses }) =>
        maxUses === null ? plural(uses, "guest") : `${uses} of ${plural(maxUses, "guest")}`
      }
    />
  );
}
