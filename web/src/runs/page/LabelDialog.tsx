import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ask } from "../../api/client.ts";
import { useApi } from "../../api/team.ts";
import { Problem } from "../../page/Problem.tsx";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Form } from "../../ui/Form.tsx";
import { readTags } from "../../ui/readTags.ts";
import { runQuery } from "../queries.ts";
import { LabelFields } from "../start/LabelFields.tsx";
import type { Label } from "../start/label.ts";

interface LabelDialogProps {
  run: { id: string; name: string | null; note: string | null; tags: string[] };
  onClose: () => void;
}

/** LabelDialog changes the name, note and tags of a run. */
export function LabelDialog({ run, onClose }: LabelDialogProps) {
  const api = useApi();
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
