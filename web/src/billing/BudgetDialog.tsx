import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { membersQuery } from "../identity/members.ts";
import { useMe } from "../identity/queries.ts";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Checkbox, Choice, Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { asSet, readAlerts, same } from "./model.ts";
import { type Budget, budgetsQuery, setBudgets } from "./queries.ts";

const scopes = { team: "The team", user: "A person", tag: "A tag" };

/** BudgetDialog sets a budget, or changes one. */
export function BudgetDialog({ all, budget, onClose }: { all: Budget[]; budget: Budget | null; onClose: () => void }) {
  const api = useApi();
  const me = useMe();
  const members = useQuery(membersQuery(me.team.id));
  const [scope, setScope] = useState<Budget["scope"]>(budget?.scope ?? "team");
  const [user, setUser] = useState(budget?.scope === "user" ? (budget.subject ?? "") : me.id);
  const [tag, setTag] = useState(budget?.scope === "tag" ? (budget.subject ?? "") : "");
  const [month, setMonth] = useState(budget?.month ?? "");
  const [limit, setLimit] = useState(budget ? String(budget.limit) : "");
  const [alerts, setAlerts] = useState((budget?.alertAt ?? [50, 80, 100]).join(", "));
  const [hard, setHard] = useState(budget?.hard ?? false);
  const client = useQueryClient();
  const alertAt = readAlerts(alerts);
  const save = useMutation({
    mutationFn: () => {
      const one: Schemas["NewBudget"] = {
        scope,
        subject: scope === "user" ? user : scope === "tag" ? tag : null,
        month: month || null,
        limit: Number(limit),
        alertAt: alertAt ?? [],
        hard,
      };
      const others = all.filter((each) => !(budget && same(each, budget)));
      return setBudgets(api, [...others.map(asSet), one]);
    },
    onSuccess: (list) => {
      client.setQueryData(budgetsQuery.queryKey, list);
      void client.invalidateQueries({ queryKey: ["estimate"] });
      onClose();
    },
    meta: { shown: true },
  });
  const people = Object.fromEntries((members.data?.members ?? []).map((each) => [each.id, each.name]));
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={budget ? "Edit budget" : "New budget"}
      description="Months are calendar months in UTC."
    >
      <Form className="space-y-4" onSubmit={() => alertAt && save.mutate()}>
        <Field label="Applies to">
          <Choice options={scopes} value={scope} onChange={setScope} />
        </Field>
        {scope === "user" && (
          <Field label="Person" hint="Includes runs that their schedules and triggers start.">
            <Choice options={people} value={user} onChange={setUser} />
          </Field>
        )}
        {scope === "tag" && (
          <Field label="Tag" hint="Counts runs that have this tag when they start.">
            <Input value={tag} onChange={(event) => setTag(event.target.value)} required pattern="[\w.:\/\-]{1,64}" />
          </Field>
        )}
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Credits per month">
            <Input
              type="number"
              min={0.000001}
              step="any"
              value={limit}
              onChange={(event) => setLimit(event.target.value)}
              required
            />
          </Field>
          <Field label="One month only" optional hint="Replaces the monthly budget in this month.">
            <Input type="month" value={month} onChange={(event) => setMonth(event.target.value)} />
          </Field>
        </div>
        <Field
          label="Alert at (%)"
          hint="Owners and admins are notified. Separate several values with commas."
          error={alertAt ? null : "Enter numbers from 1 to 100, separated by commas."}
        >
          <Input value={alerts} onChange={(event) => setAlerts(event.target.value)} />
        </Field>
        <Checkbox
          label="Hard limit: when the budget is spent, interrupt runs and don't start new ones"
          checked={hard}
          onChange={(event) => setHard(event.target.checked)}
        />
        {save.error && <Problem error={save.error} />}
        <Button type="submit" look="primary" busy={save.isPending}>
          Save
        </Button>
      </Form>
    </Dialog>
  );
}
