import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { type Role, roles } from "../identity/access.ts";
import { useMe } from "../identity/queries.ts";
import { type Scope, ScopeBoxes, scopeWords } from "../identity/Scopes.tsx";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input, Select } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { day } from "../ui/format.ts";
import { Notice } from "../ui/Notice.tsx";
import { Time } from "../ui/Time.tsx";
import { createToken, revokeToken, tokensQuery } from "./queries.ts";
import { useEnding } from "./useEnding.ts";

/** Tokens are for scripts that act as their maker. */
export function Tokens() {
  const api = useApi();
  const tokens = useQuery(tokensQuery);
  const end = useEnding("tokens", (id) => revokeToken(api, id));
  const [making, setMaking] = useState(false);
  return (
    <Section
      title="Access tokens"
      intro="For scripts that act on your behalf."
      actions={
        <Button
          size="sm"
          icon={<Plus className="size-4" aria-hidden />}
          disabledReason={tokens.isError ? "This server doesn't offer access tokens." : null}
          onClick={() => setMaking(true)}
        >
          New token
        </Button>
      }
    >
      <Answer query={tokens} rows={1}>
        {(list) =>
          list.length === 0 ? (
            <p className="text-sm text-muted">No access tokens.</p>
          ) : (
            <ul className="divide-y rounded-lg border bg-surface">
              {list.map((token) => (
                <li key={token.id} className="flex items-center gap-3 px-4 py-3 text-sm">
                  <KeyRound className="size-5 text-muted" aria-hidden />
                  <div className="flex-1">
                    <p className="font-medium">{token.name}</p>
                    <p className="text-[13px] text-muted">
                      {token.role} in {token.team.name} · {scopeWords(token.scopes)} · ends in{" "}
                      <code>{token.tokenHint}</code> · expires {day(token.expiresAt)}
                      {token.lastUsedAt ? (
                        <>
                          {" "}
                          · last used <Time at={token.lastUsedAt} />
                        </>
                      ) : (
                        " · never used"
                      )}
                    </p>
                  </div>
                  <Button
                    size="sm"
                    look="danger-quiet"
                    aria-label={`Revoke ${token.name}`}
                    onClick={() => end.mutate(token.id)}
                  >
                    Revoke
                  </Button>
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
      <TokenDialog open={making} onOpenChange={setMaking} />
    </Section>
  );
}

function TokenDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const api = useApi();
  const [name, setName] = useState("");
  const [days, setDays] = useState(90);
  const [scopes, setScopes] = useState<Scope[]>([]);
  const mine = useMe().team;
  // A script seldom needs more than to start runs; more is chosen on purpose.
  const [role, setRole] = useState<Role>(mine.role === "viewer" ? "viewer" : "member");
  const client = useQueryClient();
  const make = useMutation({
    mutationFn: () =>
      createToken(api, { name: name.trim(), expiresInDays: days, role, ...(scopes.length > 0 && { scopes }) }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["tokens"] }),
    meta: { shown: true },
  });
  const close = (next: boolean) => {
    make.reset();
    setName("");
    onOpenChange(next);
  };
  return (
    <Dialog open={open} onOpenChange={close} title="New access token">
      {make.data ? (
        <div className="space-y-3">
          <Notice tone="warn" title="Copy the token now">
            It won't be shown again.
          </Notice>
          <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
            <code className="min-w-0 flex-1 break-all">{make.data.token}</code>
            <Copy text={make.data.token} label="Copy token" />
          </div>
          <Button look="primary" onClick={() => close(false)}>
            Done
          </Button>
        </div>
      ) : (
        <Form onSubmit={() => make.mutate()}>
          <Field label="Name" hint="What it's for, such as the script that uses it.">
            <Input value={name} onChange={(event) => setName(event.target.value)} required maxLength={200} autoFocus />
          </Field>
          <Field label="Role" hint={`What the token may do in ${mine.name}.`}>
            <Select value={role} onChange={(event) => setRole(event.target.value as Role)}>
              {roles.slice(0, roles.indexOf(mine.role) + 1).map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </Select>
          </Field>
          <Field label="Expires after">
            <Select value={days} onChange={(event) => setDays(Number(event.target.value))}>
              {[7, 30, 90, 366].map((each) => (
                <option key={each} value={each}>
                  {each === 366 ? "1 year" : `${each} days`}
                </option>
              ))}
            </Select>
          </Field>
          <ScopeBoxes value={scopes} onChange={setScopes} />
          {make.error && <Problem title="Couldn't create the token" error={make.error} />}
          <Button type="submit" look="primary" busy={make.isPending}>
            Create token
          </Button>
        </Form>
      )}
    </Dialog>
  );
}
