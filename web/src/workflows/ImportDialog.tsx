import { useMutation, useQueryClient } from "@tanstack/react-query";
import { FileJson } from "lucide-react";
import { useApi } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { useGo } from "../page/useGo.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { DropZone } from "../ui/DropZone.tsx";
import { plural } from "../ui/format.ts";
import { toast } from "../ui/toast.ts";
import { readImport } from "./model.ts";
import { createWorkflow } from "./queries.ts";

/** read takes a workflow from a file; what reads YAML is loaded with the first one. */
async function read(file: File) {
  const text = await file.text();
  if (!/\.ya?ml$/i.test(file.name)) return readImport(text, file.name);
  const { parse } = await import("yaml");
  return readImport(text, file.name, (yaml) => parse(yaml, { maxAliasCount: 0 }));
}

/** ImportDialog makes workflows of exported files. */
export default function ImportDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const api = useApi();
  const go = useGo();
  const client = useQueryClient();
  const load = useMutation({
    mutationFn: async (files: File[]) => {
      // All are read before the first is kept.
      const imports = await Promise.all(files.map(read));
      const made = [];
      for (const each of imports) made.push(await createWorkflow(api, each));
      return made;
    },
    onSuccess: (made) => {
      const [only] = made;
      if (made.length === 1 && only) void go({ to: "/workflows/$workflowId", params: { workflowId: only.id } });
      else onOpenChange(false);
      toast.ok(`Imported ${plural(made.length, "workflow")}`);
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["workflows"] }),
    meta: { shown: true },
  });
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => {
        load.reset();
        onOpenChange(next);
      }}
      title="Import workflow"
      description="A file exported from Millrace, or a definition, as JSON or YAML."
    >
      <div className="space-y-3">
        <DropZone
          accept=".json,.yaml,.yml,application/json,application/yaml"
          busy={load.isPending}
          icon={<FileJson />}
          onFiles={(files) => load.mutate(files)}
        >
          Drop JSON or YAML files here, or choose them
        </DropZone>
        {load.error && <Problem title="Couldn't import" error={load.error} />}
      </div>
    </Dialog>
  );
}
