import { useQuery } from "@tanstack/react-query";
import { useMissing } from "../../identity/queries.ts";
import { Field, Select } from "../../ui/Field.tsx";
import { duration } from "../../ui/format.ts";
import { executorsQuery, executorText } from "./executorText.ts";

/** ExecutorPicker chooses the executor of a run. It is hidden if the server has only one. */
export function ExecutorPicker({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const { data = [] } = useQuery(executorsQuery);
  const free = useMissing("billing");
  if (data.length < 2) return null;
  return (
    <Field label="Where it runs" hint="Automatic: the first that offers the size.">
      <Select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">Automatic</option>
        {data.map((each) => (
          <option key={each.name} value={each.name} disabled={each.problem !== null}>
            {executorText(free ? { ...each, priceFactor: 1 } : each, duration)}
          </option>
        ))}
      </Select>
    </Field>
  );
}
