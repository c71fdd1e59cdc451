import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Page } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { ConfirmDialog, Dialog } from "../ui/Dialog.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Field, Input, Textarea } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { deleteSecret, putSecret, type Secret, secretsQuery } from "./queries.ts";

/** SecretsPage is the team's passwords, keys and tokens, by name alone. */
export function SecretsPage() {
  const may = useWhyNot();
  const hidden = may("use secrets");
  const whyNot = may("manage secrets");
  const secrets = useQuery({ ...secretsQuery, enabled: hidden === null });
  const [setting, setSetting] = useState<string | null>(null); // a name, or "" for a new one
  const add = (
    <Button
      look="primary"
      icon={<Plus className="size-4" aria-hidden />}
      disabledReason={whyNot}
      onClick={() => setSetting("")}
    >
      New secret
    </Button>
  );
  return (
    <Page
      title="Secrets"
      intro="Passwords, keys and tokens that steps need. A step lists the secrets it uses, and only its command can read them."
      actions={secrets.data?.length ? add : null}
    >
      {hidden ? (
        <Notice>{hidden}</Notice>
      ) : (
        <Answer query={secrets}>
          {(list) =>
            list.length === 0 ? (
              <Empty icon={<KeyRound aria-hidden />} title="No secrets yet" actions={add}>
                Save a token here, add it under <em>Secrets</em> of a step, and use it in the command as{" "}
                <code>$SECRET_NAME</code>. Logs show it as <code>***</code>.
              </Empty>
            ) : (
              <Secrets list={list} whyNot={whyNot} onSet={setSetting} />
            )
          }
        </Answer>
      )}
      {setting !== null && <SetDialog key={setting} name={setting} onClose={() => setSetting(null)} />}
    </Page>
  );
}

function Secrets({ list, whyNot, onSet }: { list: Secret[]; whyNot: string | null; onSet: (name: string) => void }) {
  const api = useApi();
  const client = useQueryClient();
  const [ending, setEnding] = useState("");
  const end = useMutation({
    mutationFn: (name: string) => deleteSecret(api, name),
    onSuccess: (gone) => toast.ok(`Deleted ${gone.name}`),
    onSettled: () => client.invalidateQueries({ queryKey: secretsQuery.queryKey }),
  });
  return (
    <>
      <Table
        label="Secrets"
        head={
          <>
            <Th>Name</Th>
            <Th className="max-sm:hidden">Ends in</Th>
            <Th className="max-sm:hidden">Version</Th>
            <Th>Changed</Th>
            <Th className="max-sm:hidden">Last used</Th>
            <Th>
              <span className="sr-only">Actions</span>
            </Th>
          </>
        }
      >
        {list.map((secret) => (
          <tr key={secret.name}>
            <Td className="break-all">
              <code>{secret.name}</code>
            </Td>
            <Td className="max-sm:hidden">{secret.hint ? <code>{secret.hint}</code> : "–"}</Td>
            <Td className="tabular max-sm:hidden">{secret.version}</Td>
            <Td>
              <Time at={secret.updatedAt} />
            </Td>
            <Td className="max-sm:hidden">{secret.lastUsedAt ? <Time at={secret.lastUsedAt} /> : "never"}</Td>
            <Td>
              <div className="flex justify-end gap-2 max-sm:flex-col">
                <Button
                  size="sm"
                  disabledReason={whyNot}
                  aria-label={`Change ${secret.name}`}
                  onClick={() => onSet(secret.name)}
                >
                  Change
                </Button>
                <Button
                  size="sm"
                  look="danger-quiet"
                  disabledReason={whyNot}
                  aria-label={`Delete ${secret.name}`}
                  onClick={() => setEnding(secret.name)}
                >
                  Delete
                </Button>
              </div>
            </Td>
          </tr>
        ))}
      </Table>
      <ConfirmDialog
        open={ending !== ""}
        onOpenChange={(open) => !open && setEnding("")}
        title={`Delete ${ending}?`}
        action="Delete secret"
        onConfirm={() => {
          end.mutate(ending);
          setEnding("");
        }}
      >
        Steps that use it can't run until you create a secret with this name again.
      </ConfirmDialog>
    </>
  );
}

const nameRule = "[A-Za-z_][A-Za-z0-9_]{0,62}";

function SetDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const api = useApi();
  const [typed, setTyped] = useState(name);
  const [value, setValue] = useState("");
  const client = useQueryClient();
  const put = useMutation({
    mutationFn: () => putSecret(api, typed, value),
    onSuccess: (kept) => {
      toast.ok(`${kept.name} saved, version ${kept.version}`);
      onClose();
    },
    onSettled: () => client.invalidateQueries({ queryKey: secretsQuery.queryKey }),
    meta: { shown: true },
  });
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title={name ? `Change ${name}` : "New secret"}>
      <Form onSubmit={() => put.mutate()}>
        {!name && (
          <Field label="Name" hint="Letters, digits and _. Commands read it as $SECRET_ followed by the name.">
            <Input
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
              pattern={nameRule}
              className="font-mono"
              autoCapitalize="off"
              autoComplete="off"
              spellCheck={false}
              required
              autoFocus
            />
          </Field>
        )}
        <Field label="Value" hint="8 bytes to 64 KB. It's stored encrypted and never shown again.">
          <Textarea
            value={value}
            onChange={(event) => setValue(event.target.value)}
            className="font-mono"
            autoComplete="off"
            spellCheck={false}
            minLength={8}
            required
          />
        </Field>
        {put.error && <Problem error={put.error} />}
        <Button type="submit" look="primary" busy={put.isPending}>
          Save
        </Button>
      </Form>
    </Dialog>
  );
}
