import { Field, Input, Textarea } from "../../ui/Field.tsx";
import { readTags } from "../../ui/readTags.ts";
import type { Label } from "./label.ts";

/** LabelFields asks for a name, a note and tags. */
export function LabelFields({ label, onChange }: { label: Label; onChange: (label: Label) => void }) {
  const { error } = readTags(label.tags);
  return (
    <div className="space-y-3">
      <Field label="Name" optional>
        <Input
          maxLength={200}
          value={label.name}
          onChange={(event) => onChange({ ...label, name: event.target.value })}
        />
      </Field>
      <Field label="Note" optional hint="Why you ran it, or what you found.">
        <Textarea
          maxLength={10_000}
          value={label.note}
          onChange={(event) => onChange({ ...label, note: event.target.value })}
        />
      </Field>
      <Field label="Tags" optional hint="Separate tags with spaces." error={error}>
        <Input
          placeholder="pilot grant:2026"
          value={label.tags}
          onChange={(event) => onChange({ ...label, tags: event.target.value })}
        />
      </Field>
    </div>
  );
}
