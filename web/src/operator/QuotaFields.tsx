import { useState } from "react";
import type { Schemas } from "../api/client.ts";
import { Field, Input } from "../ui/Field.tsx";

type Edit = Schemas["OperatorTeamEdit"];

/** Limits are the quotas of a team, or of those that will be created. */
export type Limits = Omit<Schemas["OperatorNewTeams"], "plan">;

/** numberOf is a limit as it was typed: nothing is no limit. */
const numberOf = (text: string) => (text.trim() === "" ? null : Number(text));

const typed = (n: number | null) => n?.toString() ?? "";

/** useQuotaFields are fields for quotas, with the change that they ask for; it is null while a number is none. */
export function useQuotaFields(limits: Limits): { fields: React.ReactNode; change: Edit | null } {
  const [monthly, setMonthly] = useState(typed(limits.monthlyVcpuHours));
  const [person, setPerson] = useState(typed(limits.perPersonVcpuHours));
  const [storage, setStorage] = useState(typed(limits.storageGb));
  const [executors, setExecutors] = useState(limits.executors?.join(", ") ?? "");
  const [account, setAccount] = useState(limits.slurm.account ?? "");
  const [qos, setQos] = useState(limits.slurm.qos ?? "");
  const [wckey, setWckey] = useState(limits.slurm.wckey ?? "");
  const names = executors
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);
  const change: Edit = {
    monthlyVcpuHours: numberOf(monthly),
    perPersonVcpuHours: numberOf(person),
    storageGb: numberOf(storage),
    executors: names.length > 0 ? names : null,
    slurm: { account: account.trim() || null, qos: qos.trim() || null, wckey: wckey.trim() || null },
  };
  const wrong = [monthly, person, storage].some((text) => !(Number(text) >= 0));
  const fields = (
    <div className="grid gap-3 sm:grid-cols-2">
      <Field label="vCPU hours a month">
        <Input inputMode="decimal" value={monthly} onChange={(event) => setMonthly(event.target.value)} />
      </Field>
      <Field label="vCPU hours a month per person">
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
  );
  return { fields, change: wrong ? null : change };
}
