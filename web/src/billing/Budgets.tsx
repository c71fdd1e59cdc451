import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { credits } from "../ui/format.ts";
import type { Tone } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Progress } from "../ui/Progress.tsx";
import { BudgetDialog } from "./BudgetDialog.tsx";
import { asSet, budgetName, outlook, same } from "./model.ts";
import { type Budget, budgetsQuery, setBudgets } from "./queries.ts";

/** Budgets is what may be spent in a month, what is spent, and what it will come to. */
export function Budgets() {
  const budgets = useQuery(budgetsQuery);
  const whyNot = useWhyNot()("manage billing");
  const [editing, setEditing] = useState<Budget | "new" | null>(null);
  return (
    <Section
      title="Budgets"
      intro="Monthly spending limits for the team, a person or a tag. Owners and admins are notified when one is nearly spent."
      actions={
        <Button
          size="sm"
          icon={<Plus className="size-4" aria-hidden />}
          disabledReason={whyNot}
          onClick={() => setEditing("new")}
        >
          Add budget
        </Button>
      }
    >
      <Answer query={budgets} rows={2}>
        {(list) => (
          <>
            {list.length === 0 && (
              <p className="text-sm text-muted">No budgets. Runs can spend all of the team's credits.</p>
            )}
            <ul className="grid gap-3 sm:grid-cols-2">
              {list.map((budget) => (
                <Row
                  key={`${budget.scope} ${budget.subject} ${budget.month}`}
                  budget={budget}
                  all={list}
                  whyNot={whyNot}
                  onEdit={() => setEditing(budget)}
                />
              ))}
            </ul>
            {editing && (
              <BudgetDialog all={list} budget={editing === "new" ? null : editing} onClose={() => setEditing(null)} />
            )}
          </>
        )}
      </Answer>
    </Section>
  );
}

const tones: Record<ReturnType<typeof outlook>, Tone> = { spent: "danger", short: "warn", fine: "ok" };

interface RowProps {
  budget: Budget;
  all: Budget[];
  whyNot: string | null;
  onEdit: () => void;
}

function Row({ budget, all, whyNot, onEdit }: RowProps) {
  const api = useApi();
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () => setBudgets(api, all.filter((each) => !same(each, budget)).map(asSet)),
    onSuccess: (list) => client.setQueryData(budgetsQuery.queryKey, list),
  });
  const name = budgetName(budget);
  const used = budget.spent + budget.held;
  const state = outlook(budget);
  return (
    <li className="rounded-xl border bg-surface p-4">
      <p className="flex flex-wrap items-center gap-2">
        <span className="font-medium break-words">{name}</span>
        <Pill>{budget.month ?? "every month"}</Pill>
        {budget.hard && <Pill tone="warn">hard limit</Pill>}
        {!budget.active && <Pill>not this month</Pill>}
      </p>
      <Progress
        className="mt-3"
        value={(used / budget.limit) * 100}
        label={`Share of ${name} spent`}
        tone={tones[state]}
      />
      <p className="tabular mt-2 text-sm">
        {credits(used)} of {credits(budget.limit)} credits
        {budget.held > 0 && <span className="text-muted">, {credits(budget.held)} held by active runs</span>}
      </p>
      {budget.active && (
        <p className="mt-1 text-sm text-muted">
          {state === "spent"
            ? budget.hard
              ? "Budget spent: no runs start until it is raised or the month ends."
              : "Spent."
            : `Forecast for the month: ${credits(budget.forecast)} credits${state === "short" ? ", more than the budget" : ""}.`}
        </p>
      )}
      <div className="mt-3 flex gap-2">
        <Button size="sm" disabledReason={whyNot} onClick={onEdit}>
          Edit
        </Button>
        <Button
          size="sm"
          look="danger-quiet"
          busy={remove.isPending}
          disabledReason={whyNot}
          onClick={() => remove.mutate()}
        >
          Remove
        </Button>
      </div>
    </li>
  );
}
