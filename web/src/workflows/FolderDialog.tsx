import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { ask } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { plural } from "../ui/format.ts";
import type { WorkflowRow } from "./queries.ts";

/** What is moved: workflows, or a folder with all that is in it. */
export type Moving = { workflows: WorkflowRow[] } | { folder: string };

interface FolderDialogProps {
  moving: Moving;
  folders: string[];
  onClose: () => void;
  onMoved?: (folder: string) => void;
}

/** FolderDialog moves workflows into a folder, or calls a folder otherwise. */
export default function FolderDialog({ moving, folders, onClose, onMoved }: FolderDialogProps) {
  const api = useApi();
  const client = useQueryClient();
  const list = useId();
  const whole = "folder" in moving;
  const [to, setTo] = useState(whole ? moving.folder : (moving.workflows[0]?.folder ?? ""));
  const move = useMutation({
    mutationFn: async () => {
      if (whole) return ask(api.POST("/api/workflows/rename-folder", { body: { from: moving.folder, to } }));
      for (const { id } of moving.workflows)
        await ask(api.PUT("/api/workflows/{id}", { params: { path: { id } }, body: { folder: to } }));
      return null;
    },
    onSuccess: (renamed) => {
      if (renamed) onMoved?.(renamed.folder);
      onClose();
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["workflows"] }),
    meta: { shown: true },
  });
  const [one] = whole ? [] : moving.workflows;
  const title = whole
    ? `Rename the folder ${moving.folder}`
    : `Move ${!whole && moving.workflows.length === 1 && one ? one.name : plural(moving.workflows.length, "workflow")}`;
  return (
    <Dialog open onOpenChange={onClose} title={title}>
      <Form onSubmit={() => move.mutate()}>
        <Field
          label="Folder"
          hint={
            whole
              ? "All its workflows move too. Enter the name of another folder to merge the two."
              : "For example, RNA/Single cell. Leave it empty for no folder."
          }
        >
          <Input list={list} value={to} maxLength={200} onChange={(event) => setTo(event.target.value)} />
        </Field>
        <datalist id={list}>
          {folders.map((folder) => (
            <option key={folder} value={folder} />
          ))}
        </datalist>
        {move.error && <Problem error={move.error} />}
        <footer className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" look="primary" busy={move.isPending}>
            {whole ? "Rename" : "Move"}
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}
