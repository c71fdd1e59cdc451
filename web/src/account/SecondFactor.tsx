import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ShieldCheck } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useApi } from "../api/team.ts";
import { useMe } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { toast } from "../ui/toast.ts";
import { changeSecondFactor, secondFactorQuery } from "./queries.ts";

const Qr = lazy(() => import("../ui/Qr.tsx"));

/** SecondFactor says whether the person signs in with a code from a phone beside the password, and changes that. */
export function SecondFactor() {
  const state = useQuery(secondFactorQuery);
  const passwords = useMe().passwordSignIn !== false;
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  // The state is read again only when the dialog closes: until then it shows the recovery codes.
  const close = () => {
    setOpen(false);
    void client.invalidateQueries({ queryKey: secondFactorQuery.queryKey });
  };
  // Without passwords nobody sets one up; one that is on can be turned off.
  if (!passwords && !open && !state.data?.enabled) return null;
  return (
    <Section
      title="Two-factor authentication"
      intro={`Sign in with ${passwords ? "your password" : "your provider"} and a code from an authenticator app.`}
    >
      <Answer query={state} rows={1}>
        {({ enabled }) => (
          <div className="flex items-center gap-3">
            <Pill tone={enabled ? "ok" : "neutral"}>{enabled ? "On" : "Off"}</Pill>
            <Button icon={<ShieldCheck className="size-4" aria-hidden />} onClick={() => setOpen(true)}>
              {enabled ? "Turn off…" : "Set up…"}
            </Button>
            <Dialog open={open} onOpenChange={close} title="Two-factor authentication">
              {enabled ? <TurnOff passwords={passwords} close={close} /> : <SetUp close={close} />}
            </Dialog>
          </div>
        )}
      </Answer>
    </Section>
  );
}

function SetUp({ close }: { close: () => void }) {
  const api = useApi();
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const begin = useMutation({
    mutationFn: () => changeSecondFactor(api, { action: "begin", password }),
    meta: { shown: true },
  });
  const confirm = useMutation({
    mutationFn: () => changeSecondFactor(api, { action: "confirm", code }),
    meta: { shown: true },
  });
  if (confirm.data) return <Recovery codes={confirm.data.recoveryCodes} close={close} />;
  const step = begin.data ? confirm : begin;
  return (
    <Form onSubmit={() => step.mutate()}>
      {begin.data ? (
        <>
          <div className="flex flex-wrap items-center gap-4">
            <Suspense fallback={null}>
              <Qr text={begin.data.otpauthUrl ?? ""} label="QR code of the secret" />
            </Suspense>
            <p className="min-w-48 flex-1 text-sm">
              Scan this with an authenticator app, or enter the secret there:
              <code className="mt-1 block break-all">{begin.data.secret}</code>
            </p>
          </div>
          <CodeField value={code} onChange={setCode} />
        </>
      ) : (
        <PasswordField value={password} onChange={setPassword} />
      )}
      {step.error && <Problem title="Couldn't continue" error={step.error} />}
      <Button type="submit" look="primary" busy={step.isPending}>
        {begin.data ? "Turn on" : "Continue"}
      </Button>
    </Form>
  );
}

function TurnOff({ passwords, close }: { passwords: boolean; close: () => void }) {
  const api = useApi();
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const disable = useMutation({
    mutationFn: () => changeSecondFactor(api, { action: "disable", password, code }),
    onSuccess: () => {
      toast.ok("Two-factor authentication is off");
      close();
    },
    meta: { shown: true },
  });
  return (
    <Form onSubmit={() => disable.mutate()}>
      {passwords && <PasswordField value={password} onChange={setPassword} />}
      <CodeField value={code} onChange={setCode} />
      {disable.error && <Problem title="Couldn't turn off" error={disable.error} />}
      <Button type="submit" look="danger" busy={disable.isPending}>
        Turn off
      </Button>
    </Form>
  );
}

interface TextProps {
  value: string;
  onChange: (value: string) => void;
}

function PasswordField({ value, onChange }: TextProps) {
  return (
    <Field label="Your password">
      <Input
        type="password"
        autoComplete="current-password"
        required
        autoFocus
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}

function CodeField({ value, onChange }: TextProps) {
  return (
    <Field label="Code from the app">
      <Input
        inputMode="numeric"
        autoComplete="one-time-code"
        required
        minLength={6}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}

function Recovery({ codes, close }: { codes: string[]; close: () => void }) {
  return (
    <div className="space-y-4">
      <Notice tone="ok" title="Two-factor authentication is on">
        Save these recovery codes somewhere other than your phone. Each works once. They won't be shown again.
      </Notice>
      <ul className="grid grid-cols-2 gap-1 rounded-lg bg-sunken p-3 font-mono text-sm">
        {codes.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
      <div className="flex gap-2">
        <Copy text={codes.join("\n")} words="Copy codes" />
        <Button look="primary" size="sm" onClick={close}>
          I've saved them
        </Button>
      </div>
    </div>
  );
}
