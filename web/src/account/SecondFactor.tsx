import { useMutation } from "@tanstack/react-query";
import { ShieldCheck } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { isFailure } from "../api/failure.ts";
import { useApi } from "../api/team.ts";
import { Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Notice } from "../ui/Notice.tsx";
import { toast } from "../ui/toast.ts";
import { changeSecondFactor } from "./queries.ts";

const Qr = lazy(() => import("../ui/Qr.tsx"));

/** SecondFactor asks for a code from a phone beside the password. */
export function SecondFactor() {
  const [open, setOpen] = useState(false);
  return (
    <Section title="Two-factor authentication" intro="Sign in with your password and a code from an authenticator app.">
      <Button icon={<ShieldCheck className="size-4" aria-hidden />} onClick={() => setOpen(true)}>
        Set up or turn off
      </Button>
      <Dialog open={open} onOpenChange={setOpen} title="Two-factor authentication">
        <Steps close={() => setOpen(false)} />
      </Dialog>
    </Section>
  );
}

function Steps({ close }: { close: () => void }) {
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
  const disable = useMutation({
    mutationFn: () => changeSecondFactor(api, { action: "disable", password, code }),
    onSuccess: () => {
      toast.ok("Two-factor authentication is off");
      close();
    },
    meta: { shown: true },
  });
  if (confirm.data) return <Recovery codes={confirm.data.recoveryCodes} close={close} />;
  const enabled = isFailure(begin.error, "already_enabled");
  const step = begin.data ? confirm : enabled ? disable : begin;
  return (
    <Form onSubmit={() => step.mutate()}>
      {!begin.data && (
        <Field label="Your password">
          <Input
            type="password"
            autoComplete="current-password"
            required
            autoFocus
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
        </Field>
      )}
      {enabled && <Notice>Two-factor authentication is on. Enter a code to turn it off.</Notice>}
      {begin.data && (
        <div className="flex flex-wrap items-center gap-4">
          <Suspense fallback={null}>
            <Qr text={begin.data.otpauthUrl ?? ""} label="QR code of the secret" />
          </Suspense>
          <p className="min-w-48 flex-1 text-sm">
            Scan this with an authenticator app, or enter the secret there:
            <code className="mt-1 block break-all">{begin.data.secret}</code>
          </p>
        </div>
      )}
      {(begin.data || enabled) && (
        <Field label="Code from the app">
          <Input
            inputMode="numeric"
            autoComplete="one-time-code"
            required
            minLength={6}
            value={code}
            onChange={(event) => setCode(event.target.value)}
          />
        </Field>
      )}
      {step.error && !enabled && <Problem title="Couldn't continue" error={step.error} />}
      {enabled && disable.error && <Problem title="Couldn't turn off" error={disable.error} />}
      <Button type="submit" look={enabled ? "danger" : "primary"} busy={step.isPending}>
        {begin.data ? "Turn on" : enabled ? "Turn off" : "Continue"}
      </Button>
    </Form>
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
