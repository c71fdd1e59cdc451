import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { ask } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { readTags } from "../ui/readTags.ts";

interface TagsDialogProps {
  workflow: { id: string; name: string; tags: string[] };
  onClose: () => void;
  onSaved: () => void;
}

/** TagsDialog changes the tags of a workflow. */
export function TagsDialog({ workflow, onClose, onSaved }: TagsDialogProps) {
  const api = useApi();
  const [text, setText] = useState(workflow.tags.join(" "));
  const { tags, error } = readTags(text);
  const save = useMutation({
    mutationFn: () => ask(api.PUT("/api/workflows/{id}", { params: { path: { id: workflow.id } }, body: { tags } })),
    onSuccess: () => {
      onSaved();
      onClose();
    },
    meta: { shown: true },
  });
  return (
    <Dialog open onOpenChange={onClose} title={`Tags of ${workflow.name}`}>
      <Form onSubmit={() => error ?? save.mutate()}>
        <Field label="Tags" hint="Separate tags with spaces." error={error}>
          <Input value={text} onChange={(event) => setText(event.target.value)} />
        </Field>
        {save.error && <Problem error={save.error} />}
        <footer className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" look="primary" busy={save.isPending} disabledReason={error}>
            Save
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}
