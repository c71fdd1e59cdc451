import { useMemo, useState } from "react";
import { once } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { useMissing } from "../identity/queries.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { grant, setPlan, suspend, useAction } from "./actions.ts";
import type { Team } from "./queries.ts";
import { TeamQuotas } from "./TeamQuotas.tsx";

/** ChangeTeam gives a team credits, puts it on a plan, or suspends it. */
export function ChangeTeam({ team, onClose }: { team: Team; onClose: () => void }) {
  const api = useApi();
  const [amount, setAmount] = useState("");
  const [reason, setReason] = useState("");
  const [plan, setTyped] = useState<string>(team.plan);
  const free = useMissing("billing");
  const suspended = team.suspendedAt !== null;
  // The same click again, after an answer that was lost, books nothing more; other words are another grant.
  // biome-ignore lint/correctness/useExhaustiveDependencies: they are what makes it another
  const key = useMemo(once, [amount, reason]);
  const give = useAction(() => grant(api, team.id, Number(amount), reason, key), "Credits added", onClose);
  const put = useAction(() => setPlan(api, team.id, plan), "Plan changed", onClose);
  const stop = useAction(
    () => suspend(api, team.id, !suspended),
    suspended ? "The team can start runs again" : "The team is suspended",
    onClose,
  );
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={team.name}
      description="The team sees these changes in its audit log."
    >
      <div className="space-y-6">
        {!free && (
          <Form onSubmit={() => give.mutate(undefined)}>
            <div className="grid gap-3 sm:grid-cols-2">
              <Field label="Credits" hint="A negative number removes credits.">
                <Input inputMode="decimal" value={amount} onChange={(event) => setAmount(event.target.value)} />
              </Field>
              <Field label="Reason" hint="Shown to the team on its usage page.">
                <Input maxLength={200} value={reason} onChange={(event) => setReason(event.target.value)} />
              </Field>
            </div>
            <Button
              type="submit"
              className="mt-3"
              busy={give.isPending}
              disabled={!Number.isFinite(Number(amount)) || Number(amount) === 0}
            >
              Add credits
            </Button>
          </Form>
        )}
        <TeamQuotas team={team} onClose={onClose} />
        <Form onSubmit={() => put.mutate(undefined)}>
          <Field label="Plan">
            <Input value={plan} onChange={(event) => setTyped(event.target.value)} />
          </Field>
          <Button type="submit" className="mt-3" busy={put.isPending} disabled={plan === "" || plan === team.plan}>
            Change plan
          </Button>
        </Form>
        <div>
          <p className="text-sm text-muted">
            A suspended team can't start runs. Active runs continue, queued runs stay in the queue, and members can
            still view and export their data.
          </p>
          <Button className="mt-3" busy={stop.isPending} onClick={() => stop.mutate(undefined)}>
            {suspended ? "Lift suspension" : "Suspend team"}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
