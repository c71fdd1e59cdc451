import { Checkbox, Field, Textarea } from "../../ui/Field.tsx";
import type { ParameterField } from "./form.ts";
import { mostRuns, type Varied } from "./varied.ts";

interface SweepFieldsProps {
  fields: ParameterField[];
  texts: Record<string, string>;
  varied: Varied;
  onChange: (texts: Record<string, string>) => void;
  /** What a parameter has when it begins to vary. */
  start: (name: string) => string;
}

/** SweepFields asks which parameters take several values, and which. */
export function SweepFields({ fields, texts, varied, onChange, start }: SweepFieldsProps) {
  const toggle = (name: string, on: boolean) => {
    const { [name]: _, ...rest } = texts;
    onChange(on ? { ...rest, [name]: start(name) } : rest);
  };
  return (
    <div className="space-y-3">
      <p className="text-muted">Starts one run for each combination of values, up to {mostRuns}.</p>
      {fields.map(({ name }) => (
        <div key={name} className="space-y-1">
          <Checkbox
            label={`Vary ${name}`}
            checked={texts[name] !== undefined}
            onChange={(event) => toggle(name, event.target.checked)}
          />
          {texts[name] !== undefined && (
            <Field label={`Values of ${name}`} hint="One per line, or comma-separated." error={varied.errors[name]}>
              <Textarea value={texts[name]} onChange={(event) => onChange({ ...texts, [name]: event.target.value })} />
            </Field>
          )}
        </div>
      ))}
      {varied.runs > mostRuns && (
        <p className="text-danger">
          That would be {varied.runs} runs: at most {mostRuns} at once.
        </p>
      )}
    </div>
  );
}
