import { type Change, FilePicker } from "../../files/FilePicker.tsx";
import { Checkbox, Field, Input, Select, Textarea } from "../../ui/Field.tsx";
import { plural } from "../../ui/format.ts";
import type { Definition } from "../../workflows/queries.ts";
import { fieldsOf, type ParameterField } from "./form.ts";

interface RunFormProps {
  definition: Definition;
  texts: Record<string, string>;
  files: Record<string, string[]>;
  errors: Record<string, string>;
  onText: (name: string, text: string) => void;
  onFiles: (name: string, change: Change) => void;
  guest: boolean;
}

/** RunForm is a control for each parameter, and a choice of files for each input. */
export function RunForm({ definition, texts, files, errors, onText, onFiles, guest }: RunFormProps) {
  const fields = fieldsOf(definition);
  const inputs = Object.entries(definition.inputs ?? {});
  const hidden = fields.filter((field) => field.hidden);
  const control = (field: ParameterField) => (
    <Control
      key={field.name}
      field={field}
      text={texts[field.name] ?? ""}
      error={errors[field.name]}
      onText={(text) => onText(field.name, text)}
    />
  );
  return (
    <>
      {inputs.length > 0 && (
        <fieldset className="space-y-4">
          <legend className="mb-2 font-semibold">Files</legend>
          {inputs.map(([name, input]) => (
            <section key={name} aria-label={name}>
              <p className="text-sm font-medium">
                {name}
                {input.required === false && <span className="ml-1.5 font-normal text-muted">optional</span>}
              </p>
              {input.description && <p className="text-[13px] text-muted">{input.description}</p>}
              <div className="mt-1">
                {guest ? (
                  <Input
                    aria-label={`File key for ${name}`}
                    placeholder="The key of a file. Ask the team for it."
                    value={(files[name] ?? []).join(" ")}
                    onChange={(event) => onFiles(name, () => event.target.value.split(/\s+/).filter(Boolean))}
                  />
                ) : (
                  <FilePicker
                    label={`Files for ${name}`}
                    multiple={input.type === "files"}
                    folder={input.type === "directory"}
                    value={files[name] ?? []}
                    onChange={(change) => onFiles(name, change)}
                    invalid={errors[`inputs.${name}`] !== undefined}
                  />
                )}
              </div>
              {errors[`inputs.${name}`] && (
                <p role="alert" className="mt-1 text-[13px] text-danger">
                  {errors[`inputs.${name}`]}
                </p>
              )}
            </section>
          ))}
        </fieldset>
      )}
      {fields.length > 0 && (
        <fieldset>
          <legend className="mb-2 font-semibold">Parameters</legend>
          <div className="grid gap-4 sm:grid-cols-2">{fields.filter((field) => !field.hidden).map(control)}</div>
          {hidden.length > 0 && (
            <details className="mt-4" open={hidden.some((field) => errors[field.name])}>
              <summary className="cursor-pointer text-sm font-medium">
                {plural(hidden.length, "further parameter")}
              </summary>
              <div className="mt-3 grid gap-4 sm:grid-cols-2">{hidden.map(control)}</div>
            </details>
          )}
        </fieldset>
      )}
      {inputs.length + fields.length === 0 && (
        <p className="text-sm text-muted">This workflow has no inputs or parameters.</p>
      )}
    </>
  );
}

function Control({
  field,
  text,
  error,
  onText,
}: {
  field: ParameterField;
  text: string;
  error: string | undefined;
  onText: (text: string) => void;
}) {
  const change = (event: { target: { value: string } }) => onText(event.target.value);
  if (field.kind === "flag") {
    return (
      <div>
        <Checkbox
          label={field.label}
          className="font-medium"
          checked={text === "true"}
          onChange={(event) => onText(String(event.target.checked))}
        />
        {field.hint && <p className="mt-0.5 text-[13px] text-muted">{field.hint}</p>}
      </div>
    );
  }
  return (
    <Field label={field.label} hint={field.hint} error={error} optional={!field.required && text === ""}>
      {field.kind === "choice" ? (
        <Select value={text} onChange={change}>
          {!field.choices.some((choice) => choice.text === text) && <option value={text}>Select one</option>}
          {field.choices.map((choice) => (
            <option key={choice.text}>{choice.text}</option>
          ))}
        </Select>
      ) : field.kind === "json" ? (
        <Textarea rows={2} className="font-mono" spellCheck={false} value={text} onChange={change} />
      ) : (
        <Input
          inputMode={field.kind === "text" ? "text" : "decimal"}
          value={text}
          onChange={change}
          {...((field.schema.default ?? null) !== null && { placeholder: `${field.schema.default}` })}
        />
      )}
    </Field>
  );
}
