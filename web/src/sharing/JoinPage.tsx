import { useMutation } from "@tanstack/react-query";
import { Clock, DoorOpen, Link2Off, Users } from "lucide-react";
import { type ComponentType, type ReactNode, Suspense, useEffect, useState } from "react";
import { type ApiFailure, isFailure } from "../api/failure.ts";
import { useApi } from "../api/team.ts";
import { useMaybeMe } from "../identity/queries.ts";
import { useTitle } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { SkeletonRows } from "../ui/Skeleton.tsx";
import { type Joined, join } from "./queries.ts";

/** The editor that a guest enters, handed in by the app: the editor itself knows this room. */
type GuestEditor = ComponentType<{ join: Joined }>;

const nameKey = "millrace.guest-name";
const tokenPattern = /^mri_[0-9A-Za-z]+$/;

/** readToken takes a share link's token from the fragment, which never reaches a server's log. */
export function readToken(hash: string): string | null {
  const token = decodeURIComponent(hash.replace(/^#/, ""));
  return tokenPattern.test(token) ? token : null;
}

/** JoinPage is where a share link leads: it asks for a name and opens the workflow. */
export function JoinPage({ Editor }: { Editor: GuestEditor }) {
  const api = useApi();
  useTitle("Shared workflow");
  const [token, setToken] = useState(() => readToken(location.hash));
  useEffect(() => {
    const read = () => setToken(readToken(location.hash));
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  const enter = useMutation({ mutationFn: (name: string) => join(api, token ?? "", name), meta: { shown: true } });
  if (enter.data) return <Inside Editor={Editor} joined={enter.data} />;
  if (!token) {
    return (
      <Calm icon={<Link2Off />} title="This link is incomplete">
        Part of it is missing, perhaps because of a line break. Copy the whole link, or ask for it again.
      </Calm>
    );
  }
  if (enter.error && ended(enter.error)) return <Ended failure={enter.error} />;
  return <Ask enter={(name) => enter.mutate(name)} busy={enter.isPending} error={enter.error} />;
}

const endings = [
  "not_found",
  "invite_expired",
  "invite_revoked",
  "invite_exhausted",
  "expired",
  "revoked",
  "exhausted",
];

function ended(error: unknown): error is ApiFailure {
  return isFailure(error) && (error.status === 404 || (error.status === 403 && endings.includes(error.code)));
}

function Ended({ failure }: { failure: ApiFailure }) {
  if (/exhausted/.test(failure.code)) {
    return (
      <Calm icon={<Users />} title="This link has reached its guest limit">
        Ask the person who sent it for a new one.
      </Calm>
    );
  }
  return (
    <Calm icon={<Clock />} title="This link no longer works">
      {/expired/.test(failure.code)
        ? "It has expired."
        : /revoked/.test(failure.code)
          ? "The team revoked it."
          : "It was revoked, or never existed."}{" "}
      Ask the person who sent it for a new one.
    </Calm>
  );
}

function Ask({ enter, busy, error }: { enter: (name: string) => void; busy: boolean; error: unknown }) {
  const me = useMaybeMe();
  const [name, setName] = useState(() => localStorage.getItem(nameKey) ?? "");
  return (
    <Calm icon={<DoorOpen />} title="You're invited to a workflow">
      <p className="mb-5">No account needed. Others in the workflow see your name and cursor.</p>
      <Form
        className="mx-auto max-w-xs space-y-4 text-left text-ink"
        onSubmit={() => {
          localStorage.setItem(nameKey, name.trim());
          enter(name.trim());
        }}
      >
        <Field label="Your name" optional hint={me && `You're signed in as ${me.name}, but will join as a guest.`}>
          <Input
            value={name}
            onChange={(event) => setName(event.target.value)}
            maxLength={80}
            autoComplete="name"
            autoFocus
          />
        </Field>
        {error !== null && error !== undefined && <Problem title="Couldn't join" error={error} />}
        <Button type="submit" look="primary" className="w-full" busy={busy}>
          Open workflow
        </Button>
      </Form>
    </Calm>
  );
}

function Inside({ Editor, joined }: { Editor: GuestEditor; joined: Joined }) {
  return (
    <Suspense fallback={<SkeletonRows label="Loading workflow" />}>
      <Editor join={joined} />
    </Suspense>
  );
}

function Calm({ icon, title, children }: { icon: ReactNode; title: string; children: ReactNode }) {
  return (
    <main id="content" className="grid flex-1 place-items-center px-4 py-12">
      <div className="w-full max-w-md text-center">
        <p className="mb-8 flex items-center justify-center gap-2 font-semibold">
          <img src="/favicon.svg" alt="" className="size-6" /> Millrace
        </p>
        <div className="mx-auto mb-4 grid size-14 place-items-center rounded-full bg-accent-soft text-accent [&>svg]:size-7">
          {icon}
        </div>
        <h1>{title}</h1>
        <div className="mt-2 text-sm text-muted">{children}</div>
      </div>
    </main>
  );
}
