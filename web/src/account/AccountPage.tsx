import { useQuery } from "@tanstack/react-query";
import { Laptop, LogOut } from "lucide-react";
import { useApi } from "../api/team.ts";
import { useMe } from "../identity/queries.ts";
import { signOut } from "../identity/session.ts";
import { Unverified } from "../identity/Unverified.tsx";
import { Answer } from "../page/Answer.tsx";
import { Page, Section } from "../page/Page.tsx";
import { chooseSingleKeys, useSingleKeys } from "../page/singleKeys.ts";
import { chooseTheme, useTheme } from "../page/theme.ts";
import { Button } from "../ui/Button.tsx";
import { Checkbox, Choice, Field } from "../ui/Field.tsx";
import { day } from "../ui/format.ts";
import { Pill } from "../ui/Pill.tsx";
import { Time } from "../ui/Time.tsx";
import { browserName } from "./browser.ts";
import { DeleteAccount } from "./DeleteAccount.tsx";
import { Password } from "./Password.tsx";
import { appsQuery, revokeApp, revokeSession, sessionsQuery } from "./queries.ts";
import { SecondFactor } from "./SecondFactor.tsx";
import { TeamData } from "./TeamData.tsx";
import { Tokens } from "./Tokens.tsx";
import { useEnding } from "./useEnding.ts";

export function AccountPage() {
  const api = useApi();
  const me = useMe();
  const theme = useTheme();
  const singleKeys = useSingleKeys();
  return (
    <Page
      title="Account"
      intro={`${me.name} · ${me.email}`}
      actions={
        <Button icon={<LogOut className="size-4" aria-hidden />} onClick={() => void signOut(api)}>
          Sign out
        </Button>
      }
    >
      <Unverified>Until then, invitations you create aren't emailed.</Unverified>
      <Section title="Appearance">
        <Field label="Theme" className="max-w-56">
          <Choice options={{ system: "System", light: "Light", dark: "Dark" }} value={theme} onChange={chooseTheme} />
        </Field>
      </Section>
      <Section
        title="Keyboard shortcuts"
        intro="Ctrl+K (Cmd+K on a Mac) always opens search. These settings apply to this browser."
      >
        <Checkbox
          label="Use single-key shortcuts: ? for search, g and a letter to go to a page"
          checked={singleKeys}
          onChange={(event) => chooseSingleKeys(event.target.checked)}
        />
      </Section>
      <Section title="Where you're signed in" intro="Signing a session out takes effect immediately.">
        <Sessions />
      </Section>
      <Section title="Connected apps" intro="Apps that can act on your behalf, such as the command line.">
        <Apps />
      </Section>
      <Tokens />
      {me.passwordSignIn !== false && <Password />}
      <SecondFactor />
      <TeamData />
      <DeleteAccount />
    </Page>
  );
}

function Sessions() {
  const api = useApi();
  const sessions = useQuery(sessionsQuery);
  const end = useEnding("sessions", (id) => revokeSession(api, id));
  return (
    <Answer query={sessions} rows={2}>
      {(list) => (
        <ul className="divide-y rounded-lg border bg-surface">
          {list.map((session) => (
            <li key={session.id} className="flex flex-wrap items-center gap-3 px-4 py-3">
              <Laptop className="size-5 text-muted" aria-hidden />
              <div className="min-w-48 flex-1 text-sm">
                <p className="font-medium break-words">
                  {browserName(session.userAgent)} {session.current && <Pill tone="ok">this browser</Pill>}
                </p>
                <p className="text-[13px] text-muted">
                  {session.address} · last seen <Time at={session.lastSeenAt} /> · expires {day(session.expiresAt)}
                </p>
              </div>
              <Button
                size="sm"
                look="danger-quiet"
                busy={end.isPending && end.variables === session.id}
                onClick={() => (session.current ? void signOut(api) : end.mutate(session.id))}
                aria-label={session.current ? "Sign out here" : `Sign out the session from ${session.address}`}
              >
                Sign out
              </Button>
            </li>
          ))}
        </ul>
      )}
    </Answer>
  );
}

function Apps() {
  const api = useApi();
  const apps = useQuery(appsQuery);
  const end = useEnding("apps", (id) => revokeApp(api, id));
  return (
    <Answer query={apps} rows={1}>
      {(list) =>
        list.length === 0 ? (
          <p className="text-sm text-muted">
            No connected apps. <code>millrace login</code> connects the command line.
          </p>
        ) : (
          <ul className="divide-y rounded-lg border bg-surface">
            {list.map((app) => (
              <li key={app.id} className="flex items-center gap-3 px-4 py-3 text-sm">
                <div className="flex-1">
                  <p className="font-medium">{app.name}</p>
                  <p className="text-[13px] text-muted">
                    connected {day(app.allowedAt)}
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
