import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input, Textarea } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { createWorkflow } from "./queries.ts";

export default function CreateDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const navigate = useNavigate();
  const client = useQueryClient();
  const create = useMutation({
    mutationFn: () => createWorkflow({ name: name.trim(), description }),
    onSuccess: (workflow) => {
      void client.invalidateQueries({ queryKey: ["workflows"] });
      void navigate({ to: "/workflows/$workflowId", params: { workflowId: workflow.id } });
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
