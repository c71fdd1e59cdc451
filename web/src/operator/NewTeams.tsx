import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../api/client.ts";
import { apiOf, useApi } from "../api/team.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { useAction } from "./actions.ts";
import { useQuotaFields } from "./QuotaFields.tsx";

type Defaults = Schemas["OperatorNewTeams"];

const newTeamsQuery = queryOptions({
  queryKey: ["operator", "new teams"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/operator/teams/default")),
});

/** NewTeams is what new teams begin with. */
export function NewTeams() {
  const defaults = useQuery(newTeamsQuery);
  return (
    <Section
      title="New teams"
      intro="The plan and quotas of teams that are created from now on. An empty field is no limit."
    >
      <Answer query={defaults} rows={2}>
        {(data) => <DefaultsForm key={JSON.stringify(data)} defaults={data} />}
      </Answer>
    </Section>
  );
}

function DefaultsForm({ defaults }: { defaults: Defaults }) {
  const api = useApi();
  const [plan, setPlan] = useState<string>(defaults.plan);
  const { fields, change } = useQuotaFields(defaults);
  const save = useAction(
    () => ask(api.PATCH("/api/operator/teams/default", { body: { plan: plan.trim() as Defaults["plan"], ...change } })),
    "Teams that are created from now on begin with this",
  );
  return (
    <Form onSubmit={() => save.mutate(undefined)}>
      <Field label="Plan">
        <Input required className="sm:w-48!" value={plan} onChange={(event) => setPlan(event.target.value)} />
      </Field>
      {fields}
      <div>
        <Button type="submit" busy={save.isPending} disabled={change === null}>
          Save defaults
        </Button>
      </div>
    </Form>
  );
}
