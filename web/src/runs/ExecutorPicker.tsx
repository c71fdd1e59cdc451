import { useQuery } from "@tanstack/react-query";
import { api, ask } from "../api/client.ts";
import { Field, Select } from "../ui/Field.tsx";
import { duration } from "../ui/format.ts";
import { executorText } from "./executorText.ts";

/** ExecutorPicker chooses where a run is executed; with a single one there is nothing to choose. */
export function ExecutorPicker({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const { data = [] } = useQuery({
    queryKey: ["executors"],
    queryFn: () => ask(api.GET("/api/executors")),
    staleTime: 15_000,
  });
  if (data.length < 2) return null;
  return (
    <Field label="Where it runs" hint="Without a choice: the first that has the size.">
      <Select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">Automatic</option>
        {data.map((each) => (
          <option key={each.name} value={each.name} disabled={each.problem !== null}>
            {executorText(each, duration)}
          </option>
        ))}
      </Select>
    </Field>
  );
}
