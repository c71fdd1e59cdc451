import { useQuery } from "@tanstack/react-query";
import type { GraphNode } from "../definition/model.ts";
import { may } from "../identity/access.ts";
import { useMaybeMe } from "../identity/queries.ts";
import { secretsQuery } from "../secrets/queries.ts";
import { Select } from "../ui/Field.tsx";
import { RemoveButton } from "./fields.tsx";

/** NodeSecrets chooses which of the team's secrets a command gets. */
export function NodeSecrets({
  node,
  locked,
  set,
}: {
  node: GraphNode;
  locked: boolean;
  set: (key: string, value: unknown) => void;
}) {
  const me = useMaybeMe();
  const known = useQuery({ ...secretsQuery, enabled: me !== null && may(me.team.role, "use secrets") }).data;
  const named = node.secrets ?? [];
  const free = (known ?? []).filter((secret) => !named.includes(secret.name));
  return (
    <section className="space-y-2">
      <h3 className="text-sm">Secrets</h3>
      {named.length === 0 && <p className="text-[13px] text-muted">No secrets used.</p>}
      {named.map((name) => (
        <div key={name} className="flex items-center gap-1.5">
          <code className="min-w-0 flex-1 break-all">$SECRET_{name}</code>
          {known && !known.some((secret) => secret.name === name) && (
            <span className="text-[13px] text-danger">not in this team</span>
          )}
          <RemoveButton
            label={`Remove the secret ${name}`}
            locked={locked}
            onClick={() => {
              const rest = named.filter((each) => each !== name);
              set("secrets", rest.length > 0 ? rest : undefined);
            }}
          />
        </div>
      ))}
      {!locked && free.length > 0 && (
        <Select
          aria-label="Add a secret"
          value=""
          onChange={(event) => event.target.value && set("secrets", [...named, event.target.value])}
        >
          <option value="">Add a secret…</option>
          {free.map((secret) => (
            <option key={secret.name}>{secret.name}</option>
          ))}
        </Select>
      )}
    </section>
  );
}
