import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useMe } from "../identity/queries.ts";
import { Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { toast } from "../ui/toast.ts";
import { changePassword } from "./queries.ts";

export function Password() {
  const api = useApi();
  const me = useMe();
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const change = useMutation({
    mutationFn: () => changePassword(api, current, next),
    onSuccess: () => {
      toast.ok("Password changed");
      setCurrent("");
      setNext("");
    },
    meta: { shown: true },
  });
  return (
    <Section title="Password">
      <Form className="max-w-sm space-y-4" onSubmit={() => change.mutate()}>
        <input type="text" name="username" autoComplete="username" value={me.email} readOnly hidden />
        <Field label="Current password">
          <Input
            type="password"
            autoComplete="current-password"
            required
            value={current}
            onChange={(event) => setCurrent(event.target.value)}
          />
        </Field>
        <Field label="New password" hint="At least 10 characters.">
          <Input
            type="password"
            autoComplete="new-password"
            required
            minLength={10}
            value={next}
            onChange={(event) => setNext(event.target.value)}
          />
        </Field>
        {change.error && <Problem title="Couldn't change the password" error={change.error} />}
        <Button type="submit" busy={change.isPending}>
          Change password
        </Button>
      </Form>
    </Section>
  );
}
