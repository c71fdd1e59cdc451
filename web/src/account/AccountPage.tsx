import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Laptop, LogOut, Plus } from "lucide-react";
import { useState } from "react";
import { Answer } from "../app/Answer.tsx";
import { Problem } from "../app/ErrorPage.tsx";
import { Page, Section } from "../app/Page.tsx";
import { chooseTheme, type Theme, useTheme } from "../app/theme.ts";
import { useMe } from "../identity/queries.ts";
import { signOut } from "../identity/session.ts";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input, Select } from "../ui/Field.tsx";
import { day } from "../ui/format.ts";
import { Notice } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { browserName } from "./browser.ts";
import {
  appsQuery,
  changePassword,
  createToken,
  revokeApp,
  revokeSession,
  revokeToken,
  sessionsQuery,
  tokensQuery,
} from "./queries.ts";
import { TeamData } from "./TeamData.tsx";

export function AccountPage() {
  const me = useMe();
  const theme = useTheme();
  return (
    <Page
      title="Account"
      intro={`${me.name} · ${me.email}`}
      actions={
        <Button icon={<LogOut className="size-4" aria-hidden />} onClick={() => void signOut()}>
          Sign out
        </Button>
      }
    >
      <Section title="Appearance">
        <Field label="Theme" className="max-w-56">
          <Select value={theme} onChange={(event) => chooseTheme(event.target.value as Theme)}>
            <option value="system">As the system</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </Select>
        </Field>
      </Section>
      <Section title="Where you are signed in" intro="Ending a session signs that browser out at once.">
        <Sessions />
      </Section>
      <Section title="Connected apps" intro="Programs that you allowed to act for you, such as the command line.">
        <Apps />
      </Section>
      <Tokens />
      <Password />
      <TeamData />
    </Page>
  );
}

/** useEnding revokes something and reads its list again. */
function useEnding(key: string, end: (id: string) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: end, onSettled: () => client.invalidateQueries({ queryKey: [key] }) });
}

function Sessions() {
  const sessions = useQuery(sessionsQuery);
  const end = useEnding("sessions", revokeSession);
  return (
    <Answer query={sessions} rows={2}>
      {(list) => (
        <ul className="divide-y rounded-lg border bg-surface">
          {list.map((session) => (
            <li key={session.id} className="flex flex-wrap items-center gap-3 px-4 py-3">
              <Laptop className="size-5 text-muted" aria-hidden />
              <div className="min-w-48 flex-1 text-sm">
                <p className="font-medium break-words">
                  {browserName(session.userAgent)} {session.current && <Pill tone="ok">this one</Pill>}
                </p>
                <p className="text-[13px] text-muted">
                  {session.address} · seen <Time at={session.lastSeenAt} /> · ends {day(session.expiresAt)}
                </p>
              </div>
              <Button
                size="sm"
                look="danger-quiet"
                busy={end.isPending && end.variables === session.id}
                onClick={() => (session.current ? void signOut() : end.mutate(session.id))}
                aria-label={session.current ? "Sign out here" : `End the session from ${session.address}`}
              >
                {session.current ? "Sign out" : "End"}
              </Button>
            </li>
          ))}
        </ul>
      )}
    </Answer>
  );
}

function Apps() {
  const apps = useQuery(appsQuery);
  const end = useEnding("apps", revokeApp);
  return (
    <Answer query={apps} rows={1}>
      {(list) =>
        list.length === 0 ? (
          <p className="text-sm text-muted">
            None. <code>millrace login</code> connects the command line.
          </p>
        ) : (
          <ul className="divide-y rounded-lg border bg-surface">
            {list.map((app) => (
              <li key={app.id} className="flex items-center gap-3 px-4 py-3 text-sm">
                <div className="flex-1">
                  <p className="font-medium">{app.name}</p>
                  <p className="text-[13px] text-muted">
                    allowed {day(app.allowedAt)}
                    {app.lastUsedAt && (
                      <>
                        , last used <Time at={app.lastUsedAt} />
                      </>
                    )}
                  </p>
                </div>
                <Button
                  size="sm"
                  look="danger-quiet"
                  aria-label={`Disconnect ${app.name}`}
                  onClick={() => end.mutate(app.id)}
                >
                  Disconnect
                </Button>
              </li>
            ))}
          </ul>
        )
      }
    </Answer>
  );
}

function Tokens() {
  const tokens = useQuery(tokensQuery);
  const end = useEnding("tokens", revokeToken);
  const [making, setMaking] = useState(false);
  return (
    <Section
      title="Access tokens"
      intro="For scripts that act as you."
      actions={
        <Button
          size="sm"
          icon={<Plus className="size-4" aria-hidden />}
          disabledReason={tokens.isError ? "This server does not offer them yet." : null}
          onClick={() => setMaking(true)}
        >
          New token
        </Button>
      }
    >
      <Answer query={tokens} rows={1}>
        {(list) =>
          list.length === 0 ? (
            <p className="text-sm text-muted">None.</p>
          ) : (
            <ul className="divide-y rounded-lg border bg-surface">
              {list.map((token) => (
                <li key={token.id} className="flex items-center gap-3 px-4 py-3 text-sm">
                  <KeyRound className="size-5 text-muted" aria-hidden />
                  <div className="flex-1">
                    <p className="font-medium">{token.name}</p>
                    <p className="text-[13px] text-muted">
                      ends in <code>{token.tokenHint}</code> · until {day(token.expiresAt)}
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
  const [name, setName] = useState("");
  const [days, setDays] = useState(90);
  const client = useQueryClient();
  const make = useMutation({
    mutationFn: () => createToken(name.trim(), days),
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
          <Notice tone="warn" title="Copy it now">
            It is not shown again.
          </Notice>
          <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
            <code className="min-w-0 flex-1 break-all">{make.data.token}</code>
            <Copy text={make.data.token} label="Copy the token" />
          </div>
          <Button look="primary" onClick={() => close(false)}>
            Done
          </Button>
        </div>
      ) : (
        <form
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault();
            make.mutate();
          }}
        >
          <Field label="Name" hint="What it is for, such as the script that uses it.">
            <Input value={name} onChange={(event) => setName(event.target.value)} required maxLength={200} autoFocus />
          </Field>
          <Field label="Works for">
            <Select value={days} onChange={(event) => setDays(Number(event.target.value))}>
              {[7, 30, 90, 366].map((each) => (
                <option key={each} value={each}>
                  {each === 366 ? "a year" : `${each} days`}
                </option>
              ))}
            </Select>
          </Field>
          {make.error && <Problem error={make.error} />}
          <Button type="submit" look="primary" busy={make.isPending}>
            Make the token
          </Button>
        </form>
      )}
    </Dialog>
  );
}

function Password() {
  const me = useMe();
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const change = useMutation({
    mutationFn: () => changePassword(current, next),
    onSuccess: () => {
      toast.ok("The password is changed");
      setCurrent("");
      setNext("");
    },
    meta: { shown: true },
  });
  return (
    <Section title="Password">
      <form
        className="max-w-sm space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate();
        }}
      >
        <input type="text" name="username" autoComplete="username" value={me.email} readOnly hidden />
        <Field label="Current password">
          <Input
            type="password"
            autoComplete="current-password"
            required
            value={current}
            onChange={(event) => setCurrent(event.target.value)}
          />
        </Field>
        <Field label="New password" hint="At least 10 characters.">
          <Input
            type="password"
            autoComplete="new-password"
            required
            minLength={10}
            value={next}
            onChange={(event) => setNext(event.target.value)}
          />
        </Field>
        {change.error && <Problem error={change.error} />}
        <Button type="submit" busy={change.isPending}>
          Change the password
        </Button>
      </form>
    </Section>
  );
}
