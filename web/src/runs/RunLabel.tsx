import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask } from "../api/client.ts";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input, Textarea } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { readTags } from "../ui/readTags.ts";
import type { Label } from "./label.ts";
import { runQuery } from "./queries.ts";

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
      <Field label="Note" optional hint="Why it is run, or what came of it.">
        <Textarea
          maxLength={10_000}
          value={label.note}
          onChange={(event) => onChange({ ...label, note: event.target.value })}
        />
      </Field>
      <Field label="Tags" optional hint="Words to find it by, with spaces between them." error={error}>
        <Input
          placeholder="pilot grant:2026"
          value={label.tags}
          onChange={(event) => onChange({ ...label, tags: event.target.value })}
        />
      </Field>
    </div>
  );
}

interface LabelDialogProps {
  run: { id: string; name: string | null; note: string | null; tags: string[] };
  onClose: () => void;
}

/** LabelDialog changes what a run is called. */
export function LabelDialog({ run, onClose }: LabelDialogProps) {
  const [label, setLabel] = useState<Label>({
    name: run.name ?? "",
    note: run.note ?? "",
    tags: run.tags.join(" "),
  });
  const client = useQueryClient();
  const { tags, error } = readTags(label.tags);
  const save = useMutation({
    mutationFn: () =>
      ask(
        api.PATCH("/api/runs/{id}", {
          params: { path: { id: run.id } },
          body: { name: label.name, note: label.note, tags },
        }),
      ),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: runQuery(run.id).queryKey });
      void client.invalidateQueries({ queryKey: ["runs"] });
      onClose();
    },
    meta: { shown: true },
  });
  return (
    <Dialog open onOpenChange={onClose} title="Name and tags">
      <Form onSubmit={() => error ?? save.mutate()}>
        <LabelFields label={label} onChange={setLabel} />
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
