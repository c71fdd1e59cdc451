import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Choice, Field, Input, Textarea } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { toast } from "../ui/toast.ts";
import { type ConnectionType, type FieldName, type FieldRule, fieldsOf, filled, typeNames } from "./fields.ts";
import { connectionsQuery, createConnection } from "./queries.ts";

/** NewConnectionDialog keeps a connection and says how its first test went. */
export function NewConnectionDialog({ onClose }: { onClose: () => void }) {
  const api = useApi();
  const [name, setName] = useState("");
  const [type, setType] = useState<ConnectionType>("s3");
  const [values, setValues] = useState<Partial<Record<FieldName, string>>>({});
  const client = useQueryClient();
  const create = useMutation({
    mutationFn: () => createConnection(api, filled(name, type, values)),
    onSuccess: (made) => {
      if (made.test.ok) toast.ok(`Created ${made.name}. The test succeeded.`);
      else toast.error(`Saved ${made.name}, but its test failed: ${made.test.message}`);
      onClose();
    },
    onSettled: () => client.invalidateQueries({ queryKey: connectionsQuery.queryKey }),
    meta: { shown: true },
  });
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="New connection">
      <Form onSubmit={() => create.mutate()}>
        <Field label="Name" hint="Shown to your team.">
          <Input value={name} onChange={(event) => setName(event.target.value)} maxLength={100} required autoFocus />
        </Field>
        <Field label="Type">
          <Choice options={typeNames} value={type} onChange={setType} />
        </Field>
        {fieldsOf[type].map((field) => (
          <Field
            key={field.name}
            label={field.label}
            optional={!field.required}
            {...(field.hint !== undefined && { hint: field.hint })}
          >
            <Control
              field={field}
              value={values[field.name] ?? ""}
              onChange={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
            />
          </Field>
        ))}
        {create.error && <Problem error={create.error} />}
        <Button type="submit" look="primary" busy={create.isPending}>
          Create and test
        </Button>
      </Form>
    </Dialog>
  );
}

interface ControlProps {
  field: FieldRule;
  value: string;
  onChange: (value: string) => void;
}

function Control({ field, value, onChange, ...named }: ControlProps) {
  const common = {
    ...named,
    value,
    placeholder: field.placeholder,
    required: field.required ?? false,
    className: "font-mono",
    autoComplete: field.secret ? "new-password" : "off",
    autoCapitalize: "off",
    spellCheck: false,
  };
  if (field.lines) return <Textarea {...common} onChange={(event) => onChange(event.target.value)} />;
  return (
    <Input {...common} type={field.secret ? "password" : "text"} onChange={(event) => onChange(event.target.value)} />
  );
}
