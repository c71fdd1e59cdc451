import type { Schemas } from "../api/client.ts";
import { Checkbox } from "../ui/Field.tsx";

export type Scope = Schemas["Scope"];

const words: Record<Scope, string> = {
  report: "Report runs of other engines",
  read: "Read workflows, runs and files",
  run: "Start and cancel runs, upload, analyze, chat",
  write: "Edit and delete workflows and files",
  admin: "Manage members, sharing, billing and secrets",
};

/** scopeWords says what of its role a token may do. */
export function scopeWords(scopes: Scope[]): string {
  return scopes.length > 0 ? scopes.join(", ") : "everything its role allows";
}

/** ScopeBoxes choose what a token may do; none means all its role may do. */
export function ScopeBoxes({ value, onChange }: { value: Scope[]; onChange: (scopes: Scope[]) => void }) {
  return (
    <fieldset className="space-y-2">
      <legend className="mb-1 text-sm font-medium">Permissions</legend>
      {(Object.keys(words) as Scope[]).map((scope) => (
        <Checkbox
          key={scope}
          label={words[scope]}
          checked={value.includes(scope)}
          onChange={(event) =>
            onChange(event.target.checked ? [...value, scope] : value.filter((each) => each !== scope))
          }
        />
      ))}
      <p className="text-[13px] text-muted">
        Limited by its role. If you select none, it has all permissions of its role.
      </p>
    </fieldset>
  );
}
