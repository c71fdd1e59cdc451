import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../api/client.ts";
import { apiOf, useApi } from "../api/team.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { plural } from "../ui/format.ts";
import { toast } from "../ui/toast.ts";
import { useWhyNot } from "./queries.ts";

type Chosen = Schemas["TeamRetention"];
type Kind = keyof Schemas["Retention"];

const kinds: Record<Kind, { name: string; about: string }> = {
  logsDays: { name: "Run logs", about: "The run, its events and outputs are kept." },
  eventsDays: { name: "Run events", about: "The run's final state is kept." },
  runsDays: { name: "Runs and their outputs", about: "Their cost is kept." },
  revisionsDays: { name: "Earlier workflow versions", about: "The current version and those used by runs are kept." },
};

const retentionQuery = queryOptions({
  queryKey: ["retention"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/team/retention")),
});

/** Retention is how long the team keeps things, to see or to choose. */
export function Retention() {
  const query = useQuery(retentionQuery);
  return (
    <Section
      title="Data retention"
      intro="Days to keep data after a run ends or a version is replaced. Older data is deleted permanently."
    >
      <Answer query={query}>{(chosen) => <RetentionForm key={JSON.stringify(chosen)} chosen={chosen} />}</Answer>
    </Section>
  );
}

function RetentionForm({ chosen }: { chosen: Chosen }) {
  const api = useApi();
  const client = useQueryClient();
  const whyNot = useWhyNot()("change data retention");
  const [days, setDays] = useState<Record<Kind, string>>({
    logsDays: String(chosen.logsDays ?? ""),
    eventsDays: String(chosen.eventsDays ?? ""),
    runsDays: String(chosen.runsDays ?? ""),
    revisionsDays: String(chosen.revisionsDays ?? ""),
  });
  const names = Object.keys(kinds) as Kind[];
  const wrong = (kind: Kind): string | null => {
    const most = chosen.most[kind] ?? 36500;
    if (days[kind] === "" || (/^\d+$/.test(days[kind]) && Number(days[kind]) >= 1 && Number(days[kind]) <= most))
      return null;
    return `Enter a whole number from 1 to ${most}, or leave it empty.`;
  };
  const save = useMutation({
    mutationFn: () => {
      const body = Object.fromEntries(names.map((kind) => [kind, days[kind] === "" ? null : Number(days[kind])]));
      return ask(api.PUT("/api/team/retention", { body }));
    },
    onSuccess: (answer) => {
      client.setQueryData(retentionQuery.queryKey, answer);
      toast.ok("Saved. Older data is deleted within an hour");
    },
    meta: { shown: true },
  });
  return (
    <form
      className="max-w-2xl space-y-4"
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        {names.map((kind) => {
          const most = chosen.most[kind];
          return (
            <Field key={kind} label={kinds[kind].name} hint={kinds[kind].about} error={wrong(kind)}>
              <Input
                inputMode="numeric"
                placeholder={most ? plural(most, "day") : "forever"}
                value={days[kind]}
                disabled={whyNot !== null}
                onChange={(event) => setDays({ ...days, [kind]: event.target.value.trim() })}
              />
            </Field>
          );
        })}
      </div>
      {save.error && <Problem error={save.error} />}
      <Button
        type="submit"
        disabledReason={whyNot ?? (names.some(wrong) ? "Correct the numbers first." : null)}
        busy={save.isPending}
      >
        Save
      </Button>
    </form>
  );
}
