// What links for people without an account have in common, to a workflow as to results.
import { type UseQueryResult, useMutation, useQueryClient } from "@tanstack/react-query";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Choice, Field } from "../ui/Field.tsx";
import { Notice, type Tone } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import Qr from "../ui/Qr.tsx";
import { Time } from "../ui/Time.tsx";
import { Answer } from "./Answer.tsx";

const lifetimes = { "24": "1 day", "168": "7 days", "720": "30 days" };

/** Lifetime is how many hours a link works. */
export type Lifetime = keyof typeof lifetimes;

export function LifetimeField({ value, onChange }: { value: Lifetime; onChange: (value: Lifetime) => void }) {
  return (
    <Field label="Expires after">
      <Choice options={lifetimes} value={value} onChange={onChange} />
    </Field>
  );
}

/** NewLink shows a link that was just made, the only time. */
export function NewLink({ made, again }: { made: { link: string; expiresAt: string }; again: () => void }) {
  return (
    <div className="space-y-3">
      <Notice tone="ok" title="Link created">
        It's shown only once. It expires <Time at={made.expiresAt} />.
      </Notice>
      <div className="flex flex-wrap items-center gap-4">
        <Qr text={made.link} label="QR code of the link" />
        <div className="min-w-56 flex-1 space-y-2">
          <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
            <code className="min-w-0 flex-1 break-all">{made.link}</code>
            <Copy text={made.link} label="Copy link" />
          </div>
          <Button size="sm" onClick={again}>
            Create another link
          </Button>
        </div>
      </div>
    </div>
  );
}

interface Link {
  id: string;
  status: "active" | "expired" | "exhausted" | "revoked";
  tokenHint: string;
  createdBy: { name: string };
  expiresAt: string;
  revokedAt: string | null;
}

interface LinkListProps<T extends Link> {
  links: UseQueryResult<T[]>;
  queryKey: readonly unknown[];
  revoke: (id: string) => Promise<unknown>;
  revocable: (link: T) => boolean;
  /** What opens by the link. */
  what: (link: T) => string;
  /** How often it was used. */
  used: (link: T) => string;
}

const tones: Record<Link["status"], Tone> = { active: "ok", expired: "neutral", exhausted: "warn", revoked: "neutral" };

/** LinkList lists links, and takes them back. */
export function LinkList<T extends Link>({ links, queryKey, revoke, revocable, what, used }: LinkListProps<T>) {
  const client = useQueryClient();
  const revoking = useMutation({ mutationFn: revoke, onSettled: () => client.invalidateQueries({ queryKey }) });
  return (
    <section>
      <h3 className="mb-2 text-sm">Links</h3>
      <Answer query={links} rows={2}>
        {(list) =>
          list.length === 0 ? (
            <p className="text-sm text-muted">No links.</p>
          ) : (
            <ul className="divide-y rounded-lg border">
              {list.map((link) => (
                <li key={link.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2 text-sm">
                  <Pill tone={tones[link.status]}>{link.status}</Pill>
                  <span className="flex-1">
                    {what(link)} · <code>…{link.tokenHint}</code>
                    <span className="block text-[13px] text-muted">
                      {used(link)} · created by {link.createdBy.name} ·{" "}
                      {link.status === "active" ? "expires " : "ended "}
                      <Time at={link.revokedAt ?? link.expiresAt} />
                    </span>
                  </span>
                  {revocable(link) && (
                    <Button
                      size="sm"
                      look="danger-quiet"
                      aria-label={`Revoke link ending in ${link.tokenHint}`}
                      busy={revoking.isPending && revoking.variables === link.id}
                      onClick={() => revoking.mutate(link.id)}
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
