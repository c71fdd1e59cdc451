import { ask } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { Button } from "../ui/Button.tsx";
import { Form } from "../ui/Form.tsx";
import { useAction } from "./actions.ts";
import { useQuotaFields } from "./QuotaFields.tsx";
import type { Team } from "./queries.ts";

/** TeamQuotas are what a team may use. */
export function TeamQuotas({ team, onClose }: { team: Team; onClose: () => void }) {
  const api = useApi();
  const { fields, change } = useQuotaFields(team);
  const save = useAction(
    () => ask(api.PATCH("/api/operator/teams/{id}", { params: { path: { id: team.id } }, body: change ?? {} })),
    "Quotas changed",
    onClose,
  );
  return (
    <Form onSubmit={() => save.mutate(undefined)}>
      <h3 className="mb-2 font-semibold">Quotas</h3>
      <p className="mb-3 text-sm text-muted">An empty field is no limit.</p>
      {fields}
      <Button type="submit" className="mt-3" busy={save.isPending} disabled={change === null}>
        Save quotas
      </Button>
    </Form>
  );
}
