import { useMutation } from "@tanstack/react-query";
import { useApi } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Choice, Field, Textarea } from "../ui/Field.tsx";
import { type Format, formats, preview } from "./queries.ts";

type FormatFieldsProps = {
  format: Format;
  template: string;
  onChange: (format: Format, template: string) => void;
};

/** FormatFields choose who reads the messages and how they are written, and show one. */
export function FormatFields({ format, template, onChange }: FormatFieldsProps) {
  const api = useApi();
  const look = useMutation({ mutationFn: () => preview(api, format, template), meta: { shown: true } });
  const change = (next: Format, text: string) => {
    look.reset();
    onChange(next, text);
  };
  return (
    <>
      <Field label="Format">
        <Choice options={formats} value={format} onChange={(next) => change(next, "")} />
      </Field>
      {format !== "standard" && (
        <>
          <Field
            label="Template"
            optional={format !== "custom"}
            hint="JSON. Placeholders such as {{title}}, {{url}} and {{errorMessage}} in its strings are replaced by values. Empty: the default message."
          >
            <Textarea
              className="font-mono text-[13px]"
              rows={5}
              maxLength={8192}
              spellCheck={false}
              value={template}
              onChange={(event) => change(format, event.target.value)}
            />
          </Field>
          <div className="flex flex-wrap gap-2">
            <Button size="sm" busy={look.isPending} onClick={() => look.mutate()}>
              Preview
            </Button>
            {look.data?.template && template === "" && (
              <Button size="sm" onClick={() => change(format, look.data.template ?? "")}>
                Edit this message
              </Button>
            )}
          </div>
        </>
      )}
      {look.error && <Problem error={look.error} />}
      {look.data && (
        <pre tabIndex={0} className="max-h-60 overflow-auto rounded-md bg-sunken p-2 text-xs">
          {JSON.stringify(look.data.body, null, 2)}
        </pre>
      )}
    </>
  );
}
