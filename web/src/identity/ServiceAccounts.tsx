import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Bot, Plus } from "lucide-react";
import { useState } from "react";
import { ask, type Schemas } from "../api/client.ts";
import { apiOf, useApi } from "../api/team.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { ConfirmDialog, Dialog } from "../ui/Dialog.tsx";
import { Field, Input, Select } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { day } from "../ui/format.ts";
import { Notice } from "../ui/Notice.tsx";
import { Time } from "../ui/Time.tsx";
import { type Scope, ScopeBoxes, scopeWords } from "./Scopes.tsx";

type Account = Schemas["ServiceAccount"];
type Token = Schemas["APIToken"];

const accountsQuery = queryOptions({
  queryKey: ["service-accounts"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/service-accounts")),
});

/** useAccountChange changes something of the accounts and reads them again. */
function useAccountChange<V, T>(change: (value: V) => Promise<T>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: accountsQuery.queryKey }),
    meta: { shown: true },
  });
}

/** ServiceAccounts are the team's programs and their tokens. */
export function ServiceAccounts() {
  const accounts = useQuery(accountsQuery);
  const [making, setMaking] = useState(false);
  const [tokenOf, setTokenOf] = useState<Account | null>(null);
  const [shown, setShown] = useState<string | null>(null);
  return (
    <Section
      title="Service accounts"
      intro="Accounts for scripts and other programs. They sign in with tokens and stay when the person who created them leaves the team."
      actions={
        <Button size="sm" icon={<Plus className="size-4" aria-hidden />} onClick={() => setMaking(true)}>
          New service account
        </Button>
      }
    >
      <Answer query={accounts} rows={1}>
        {(list) =>
          list.length === 0 ? (
            <p className="text-sm text-muted">No service accounts.</p>
          ) : (
            <ul className="divide-y rounded-lg border bg-surface">
              {list.map((account) => (
                <AccountRow
                  key={account.id}
                  account={account}
                  onToken={() => setTokenOf(account)}
                  onShow={(token) => setShown(token)}
                />
              ))}
            </ul>
          )
        }
      </Answer>
      {making && <NewAccount onClose={() => setMaking(false)} />}
      {tokenOf && (
        <NewToken
          account={tokenOf}
          onClose={(token) => {
            setTokenOf(null);
            setShown(token);
          }}
        />
      )}
      <Dialog open={shown !== null} onOpenChange={() => setShown(null)} title="New token">
        <div className="space-y-3">
          <Notice tone="warn" title="Copy the token now">
            It won't be shown again.
          </Notice>
          <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
            <code className="min-w-0 flex-1 break-all">{shown}</code>
            <Copy text={shown ?? ""} label="Copy token" />
          </div>
        </div>
      </Dialog>
    </Section>
  );
}

function AccountRow({
  account,
  onToken,
  onShow,
}: {
  account: Account;
  onToken: () => void;
  onShow: (token: string) => void;
}) {
  const api = useApi();
  const { id } = account;
  const [ending, setEnding] = useState(false);
  const end = useAccountChange(() => ask(api.DELETE("/api/service-accounts/{id}", { params: { path: { id } } })));
  return (
    <li className="space-y-2 px-4 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-3">
        <Bot className="size-5 text-muted" aria-hidden />
        <p className="min-w-0 flex-1">
          <span className="font-medium">{account.name}</span>{" "}
          <span className="text-muted">
            · {account.role} · created by {account.createdBy}
          </span>
        </p>
        <Button size="sm" aria-label={`New token for ${account.name}`} onClick={onToken}>
          New token
        </Button>
        <Button size="sm" look="danger-quiet" aria-label={`Delete ${account.name}`} onClick={() => setEnding(true)}>
          Delete
        </Button>
      </div>
      {account.tokens.map((token) => (
        <TokenRow key={token.id} account={id} token={token} onShow={onShow} />
      ))}
      <ConfirmDialog
        open={ending}
        onOpenChange={setEnding}
        title={`Delete ${account.name}?`}
        action="Delete service account"
        onConfirm={() => {
          end.mutate(undefined);
          setEnding(false);
        }}
      >
        Its tokens stop working immediately.
      </ConfirmDialog>
    </li>
  );
}

function TokenRow({ account, token, onShow }: { account: string; token: Token; onShow: (token: string) => void }) {
  const api = useApi();
  const path = { id: account, tokenId: token.id };
  const revoke = useAccountChange(() =>
    ask(api.DELETE("/api/service-accounts/{id}/tokens/{tokenId}", { params: { path } })),
  );
  const rotate = useAccountChange(async () => {
    const made = await ask(
      api.POST("/api/service-accounts/{id}/tokens/{tokenId}/rotate", { params: { path }, body: { overlapHours: 24 } }),
    );
    onShow(made.token);
  });
  return (
    <div className="flex flex-wrap items-center gap-2 pl-8 text-[13px] text-muted">
      <span className="min-w-0 flex-1">
        {token.name} · {scopeWords(token.scopes)} · ends in <code>{token.tokenHint}</code> · until{" "}
        {day(token.expiresAt)} ·{" "}
        {token.lastUsedAt ? (
          <>
            last used <Time at={token.lastUsedAt} /> from {token.lastUsedFrom}
          </>
        ) : (
          "never used"
        )}
      </span>
      <Button
        size="sm"
        busy={rotate.isPending}
        aria-label={`Rotate ${token.name}`}
        onClick={() => rotate.mutate(undefined)}
      >
        Rotate
      </Button>
      <Button
        size="sm"
        look="danger-quiet"
        aria-label={`Revoke ${token.name}`}
        onClick={() => revoke.mutate(undefined)}
      >
        Revoke
      </Button>
    </div>
  );
}

function NewAccount({ onClose }: { onClose: () => void }) {
  const api = useApi();
  const [name, setName] = useState("");
  const [role, setRole] = useState<"viewer" | "member" | "admin">("member");
  const make = useAccountChange(async () => {
    await ask(api.POST("/api/service-accounts", { body: { name: name.trim(), role } }));
    onClose();
  });
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="New service account">
      <Form onSubmit={() => make.mutate(undefined)}>
        <Field label="Name" hint="For example, the program that uses it.">
          <Input value={name} onChange={(event) => setName(event.target.value)} required maxLength={200} autoFocus />
        </Field>
        <Field label="Role">
          <Select value={role} onChange={(event) => setRole(event.target.value as typeof role)}>
            <option>viewer</option>
            <option>member</option>
            <option>admin</option>
          </Select>
        </Field>
        {make.error && <Problem title="Couldn't create the service account" error={make.error} />}
        <Button type="submit" look="primary" busy={make.isPending}>
          Create service account
        </Button>
      </Form>
    </Dialog>
  );
}

function NewToken({ account, onClose }: { account: Account; onClose: (token: string | null) => void }) {
  const api = useApi();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(["read", "run"]);
  const make = useAccountChange(async () => {
    const body = { name: name.trim(), expiresInDays: 90, ...(scopes.length > 0 && { scopes }) };
    const made = await ask(
      api.POST("/api/service-accounts/{id}/tokens", { params: { path: { id: account.id } }, body }),
    );
    onClose(made.token);
  });
  return (
    <Dialog open onOpenChange={(open) => !open && onClose(null)} title={`New token for ${account.name}`}>
      <Form onSubmit={() => make.mutate(undefined)}>
        <Field label="Name" hint="Where it's used. It expires after 90 days.">
          <Input value={name} onChange={(event) => setName(event.target.value)} required maxLength={200} autoFocus />
        </Field>
        <ScopeBoxes value={scopes} onChange={setScopes} />
        {make.error && <Problem title="Couldn't create the token" error={make.error} />}
        <Button type="submit" look="primary" busy={make.isPending}>
          Create token
        </Button>
      </Form>
    </Dialog>
  );
}
