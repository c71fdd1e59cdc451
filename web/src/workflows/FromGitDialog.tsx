import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ask, once } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { connectionsQuery } from "../connections/queries.ts";
import { Problem } from "../page/Problem.tsx";
import { useGo } from "../page/useGo.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Choice, Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";

/** FromGitDialog makes a workflow of what a repository holds; it follows that from then on. */
export default function FromGitDialog({
  open,
  onOpenChange,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
}) {
  const api = useApi();
  const [git, setGit] = useState("");
  const [ref, setRef] = useState("");
  const [path, setPath] = useState("");
  const [connection, setConnection] = useState("");
  const connections = useQuery({ ...connectionsQuery, meta: { shown: true } });
  const hosts = (connections.data ?? []).filter((each) => each.type === "git");
  const go = useGo();
  const client = useQueryClient();
  const create = useMutation({
    mutationFn: () => {
      const where = {
        git: git.trim(),
        ...(ref.trim() && { ref: ref.trim() }),
        ...(path.trim() && { path: path.trim() }),
        ...(connection && { connection }),
      };
      return ask(api.POST("/api/workflows", { params: { header: once() }, body: { git: where, description: null } }));
    },
    onSuccess: (workflow) => {
      void client.invalidateQueries({ queryKey: ["workflows"] });
      void go({ to: "/workflows/$workflowId", params: { workflowId: workflow.id } });
    },
    meta: { shown: true },
  });
  const code = { className: "font-mono", autoCapitalize: "off", autoComplete: "off", spellCheck: false };
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title="New workflow from Git"
      description="The workflow follows the file millrace.yaml or millrace.json in a repository. You edit it there."
    >
      <Form onSubmit={() => create.mutate()}>
        <Field label="Repository">
          <Input
            {...code}
            value={git}
            onChange={(event) => setGit(event.target.value)}
            placeholder="https://github.com/you/analysis.git"
            maxLength={2000}
            required
            autoFocus
          />
        </Field>
        <Field label="Branch, tag or commit" optional hint="Default: the repository's default branch.">
          <Input {...code} value={ref} onChange={(event) => setRef(event.target.value)} maxLength={250} />
        </Field>
        <Field label="Folder" optional hint="Folder containing the file. Default: the top folder.">
          <Input
            {...code}
            value={path}
            onChange={(event) => setPath(event.target.value)}
            placeholder="analysis"
            maxLength={1000}
          />
        </Field>
        <Field
          label="Connection"
          optional
          hint={
            hosts.length > 0
              ? "Needed for a private repository."
              : "A private repository needs a connection to its Git host."
          }
        >
          <Choice<string>
            options={{ "": "Public repository", ...Object.fromEntries(hosts.map((c) => [c.id, c.name])) }}
            value={connection}
            onChange={setConnection}
          />
        </Field>
        {create.error && <Problem title="Couldn't create the workflow" error={create.error} />}
        <Button type="submit" look="primary" busy={create.isPending}>
          Create and open
        </Button>
      </Form>
    </Dialog>
  );
}
