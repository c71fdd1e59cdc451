import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Checkbox, Choice, Field, Input, Select } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { plural } from "../ui/format.ts";
import { Notice, type Tone } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import Qr from "../ui/Qr.tsx";
import { Time } from "../ui/Time.tsx";
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
          <NewLink workflowId={workflowId} />
          <Links workflowId={workflowId} />
        </div>
      )}
    </Dialog>
  );
}

const ends = [
  [24, "1 day"],
  [168, "7 days"],
  [720, "30 days"],
] as const;

function NewLink({ workflowId }: { workflowId: string }) {
  const api = useApi();
  const [role, setRole] = useState<"viewer" | "editor">("viewer");
  const [hours, setHours] = useState(168);
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
        expiresInHours: hours,
        ...(uses && { maxUses: Number(uses) }),
        ...(role === "editor" && spend && { maxCredits: Number(spend) }),
        allowSecrets: role === "editor" && secrets,
        allowResults: role === "editor" && results,
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["invites", workflowId] }),
    meta: { shown: true },
  });
  if (make.data) {
    return (
      <div className="space-y-3">
        <Notice tone="ok" title="Link created">
          It's shown only once. It expires <Time at={make.data.expiresAt} />.
        </Notice>
        <div className="flex flex-wrap items-center gap-4">
          <Qr text={make.data.link} label="QR code of the link" />
          <div className="min-w-56 flex-1 space-y-2">
            <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
              <code className="min-w-0 flex-1 break-all">{make.data.link}</code>
              <Copy text={make.data.link} label="Copy link" />
            </div>
            <Button size="sm" onClick={() => make.reset()}>
              Create another link
            </Button>
          </div>
        </div>
      </div>
    );
  }
  return (
    <Form onSubmit={() => make.mutate()}>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field
          label="Guests can"
          hint={role === "editor" ? "Edit with you, and start runs that your team pays for." : "View only."}
        >
          <Choice options={{ viewer: "View", editor: "Edit and run" }} value={role} onChange={setRole} />
        </Field>
        <Field label="Expires after">
          <Select value={hours} onChange={(event) => setHours(Number(event.target.value))}>
            {ends.map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </Select>
        </Field>
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
        {role === "editor" && (
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

const tones: Record<Invite["status"], Tone> = {
  active: "ok",
  expired: "neutral",
  exhausted: "warn",
  revoked: "neutral",
};

/** revocable tells whether revoking a link ends anything: of an expired one, the links to results of its guests' runs. */
function revocable({ status, allowResults }: Invite): boolean {
  return status === "active" || status === "exhausted" || (status === "expired" && allowResults);
}

function Links({ workflowId }: { workflowId: string }) {
  const api = useApi();
  const invites = useQuery(invitesQuery(workflowId));
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: (id: string) => revokeInvite(api, id),
    onSettled: () => client.invalidateQueries({ queryKey: ["invites", workflowId] }),
  });
  return (
    <section>
      <h3 className="mb-2 text-sm">Links</h3>
      <Answer query={invites} rows={2}>
        {(list) =>
          list.length === 0 ? (
            <p className="text-sm text-muted">No links.</p>
          ) : (
            <ul className="divide-y rounded-lg border">
              {list.map((each) => (
                <li key={each.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2 text-sm">
                  <Pill tone={tones[each.status]}>{each.status}</Pill>
                  <span className="flex-1">
                    {each.role === "editor" ? "Edit and run" : "View"}
                    {each.allowResults && ", with results"} · <code>…{each.tokenHint}</code>
                    <span className="block text-[13px] text-muted">
                      {each.maxUses === null
                        ? plural(each.uses, "guest")
                        : `${each.uses} of ${plural(each.maxUses, "guest")}`}{" "}
                      · created by {each.createdBy.name} · {each.status === "active" ? "expires " : "ended "}
                      <Time at={each.revokedAt ?? each.expiresAt} />
                    </span>
                  </span>
                  {revocable(each) && (
                    <Button
                      size="sm"
                      look="danger-quiet"
                      aria-label={`Revoke link ending in ${each.tokenHint}`}
                      busy={revoke.isPending && revoke.variables === each.id}
                      onClick={() => revoke.mutate(each.id)}
                    >
                      Revoke
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </section>
  );
}
