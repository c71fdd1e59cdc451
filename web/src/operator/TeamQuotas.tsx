import { useState } from "react";
import { ask, type Schemas } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { Button } from "../ui/Button.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { useAction } from "./actions.ts";
import type { Team } from "./queries.ts";

type Edit = Schemas["OperatorTeamEdit"];

/** numberOf is a limit as it was typed: nothing is no limit. */
const numberOf = (text: string) => (text.trim() === "" ? null : Number(text));

const typed = (n: number | null) => n?.toString() ?? "";

/** TeamQuotas are what a team may use. An empty field is no limit. */
export function TeamQuotas({ team, onClose }: { team: Team; onClose: () => void }) {
  const api = useApi();
  const [monthly, setMonthly] = useState(typed(team.monthlyVcpuHours));
  const [person, setPerson] = useState(typed(team.perPersonVcpuHours));
  const [storage, setStorage] = useState(typed(team.storageGb));
  const [executors, setExecutors] = useState(team.executors?.join(", ") ?? "");
  const [account, setAccount] = useState(team.slurm.account ?? "");
  const [qos, setQos] = useState(team.slurm.qos ?? "");
  const [wckey, setWckey] = useState(team.slurm.wckey ?? "");
  const names = executors
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);
  const body: Edit = {
    monthlyVcpuHours: numberOf(monthly),
    perPersonVcpuHours: numberOf(person),
    storageGb: numberOf(storage),
    executors: names.length > 0 ? names : null,
    slurm: { account: account.trim() || null, qos: qos.trim() || null, wckey: wckey.trim() || null },
  };
  const save = useAction(
    () => ask(api.PATCH("/api/operator/teams/{id}", { params: { path: { id: team.id } }, body })),
    "Quotas changed",
    onClose,
  );
  const wrong = [monthly, person, storage].some((text) => !(Number(text) >= 0));
  return (
    <Form onSubmit={() => save.mutate(undefined)}>
      <h3 className="mb-2 font-semibold">Quotas</h3>
      <p className="mb-3 text-sm text-muted">An empty field is no limit.</p>
      <div className="grid gap-3 sm:grid-cols-2">
        <Field label="vCPU hours a month">
          <Input inputMode="decimal" value={monthly} onChange={(event) => setMonthly(event.target.value)} />
        </Field>
        <Field label="vCPU hours a month for each person">
          <Input inputMode="decimal" value={person} onChange={(event) => setPerson(event.target.value)} />
        </Field>
        <Field label="Storage in GB">
          <Input inputMode="decimal" value={storage} onChange={(event) => setStorage(event.target.value)} />
        </Field>
        <Field label="Executors" hint="Names, divided by commas.">
          <Input value={executors} onChange={(event) => setExecutors(event.target.value)} />
        </Field>
        <Field label="Slurm account">
          <Input maxLength={64} value={account} onChange={(event) => setAccount(event.target.value)} />
        </Field>
        <Field label="Slurm QOS">
          <Input maxLength={64} value={qos} onChange={(event) => setQos(event.target.value)} />
        </Field>
        <Field label="Slurm wckey">
          <Input maxLength={64} value={wckey} onChange={(event) => setWckey(event.target.value)} />
        </Field>
      </div>
      <Button type="submit" className="mt-3" busy={save.isPending} disabled={wrong}>
        Save quotas
      </Button>
    </Form>
  );
}
