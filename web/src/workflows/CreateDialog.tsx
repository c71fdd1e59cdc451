import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { useGo } from "../page/useGo.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input, Textarea } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { createWorkflow } from "./queries.ts";

export default function CreateDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const api = useApi();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const go = useGo();
  const client = useQueryClient();
  const create = useMutation({
    mutationFn: () => createWorkflow(api, { name: name.trim(), description }),
    onSuccess: (workflow) => {
      void client.invalidateQueries({ queryKey: ["workflows"] });
      void go({ to: "/workflows/$workflowId", params: { workflowId: workflow.id } });
    },
    meta: { shown: true },
  });
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="New workflow">
      <Form onSubmit={() => create.mutate()}>
        <Field label="Name">
          <Input value={name} onChange={(event) => setName(event.target.value)} required maxLength={200} autoFocus />
        </Field>
        <Field label="Description" optional>
          <Textarea value={description} onChange={(event) => setDescription(event.target.value)} maxLength={10_000} />
        </Field>
        {create.error && <Problem title="Couldn't create the workflow" error={create.error} />}
        <Button type="submit" look="primary" busy={create.isPending}>
          Create and open
        </Button>
      </Form>
    </Dialog>
  );
}
