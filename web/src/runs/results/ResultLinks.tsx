import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ask, once } from "../../api/client.ts";
import { apiOf, useApi } from "../../api/team.ts";
import { useWhyNot } from "../../identity/queries.ts";
import { type Lifetime, LifetimeField, LinkList, NewLink } from "../../page/Links.tsx";
import { Problem } from "../../page/Problem.tsx";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Checkbox } from "../../ui/Field.tsx";
import { Form } from "../../ui/Form.tsx";
import { plural } from "../../ui/format.ts";
import { Notice } from "../../ui/Notice.tsx";

interface ResultLinksProps {
  run: { id: string; parameters: Record<string, unknown> };
  onClose: () => void;
}

/** ResultLinks makes links to a run's results, for people without an account, and takes them back. */
export function ResultLinks({ run, onClose }: ResultLinksProps) {
  const whyNot = useWhyNot()("manage sharing");
  return (
    <Dialog
      wide
      open
      onOpenChange={onClose}
      title="Share results"
      description="Anyone with the link can see the graph, the parameters you choose and the outputs, without an account. Commands, logs and people aren't shown."
    >
      {whyNot ? (
        <Notice>{whyNot}</Notice>
      ) : (
        <div className="space-y-6">
          <LinkForm run={run} />
          <Links runId={run.id} />
        </div>
      )}
    </Dialog>
  );
}

const linksQuery = (runId: string) =>
  queryOptions({
    queryKey: ["result links", runId],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/runs/{id}/links", { params: { path: { id: runId } } })),
  });

function LinkForm({ run }: { run: ResultLinksProps["run"] }) {
  const api = useApi();
  const [hours, setHours] = useState<Lifetime>("168");
  const [shown, setShown] = useState<string[]>([]);
  const [allowCopy, setAllowCopy] = useState(false);
  const client = useQueryClient();
  const make = useMutation({
    mutationFn: () =>
      ask(
        api.POST("/api/runs/{id}/links", {
          params: { path: { id: run.id }, header: once() },
          body: { expiresInHours: Number(hours), parameters: shown, allowCopy },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: linksQuery(run.id).queryKey }),
    meta: { shown: true },
  });
  if (make.data) return <NewLink made={make.data} again={() => make.reset()} />;
  const names = Object.keys(run.parameters).toSorted();
  return (
    <Form onSubmit={() => make.mutate()}>
      <LifetimeField value={hours} onChange={setHours} />
      {names.length > 0 && (
        <fieldset className="space-y-1">
          <legend className="mb-1 text-sm font-medium">Parameters to show</legend>
          {names.map((name) => (
            <Checkbox
              key={name}
              label={name}
              checked={shown.includes(name)}
              onChange={(event) =>
                setShown((old) => (event.target.checked ? [...old, name] : old.filter((each) => each !== name)))
              }
            />
          ))}
        </fieldset>
      )}
      <Checkbox
        label="Allow people to copy the workflow, including its commands, to their own team"
        checked={allowCopy}
        onChange={(event) => setAllowCopy(event.target.checked)}
      />
      {make.error && <Problem error={make.error} />}
      <Button type="submit" look="primary" busy={make.isPending}>
        Create link
      </Button>
    </Form>
  );
}

function Links({ runId }: { runId: string }) {
  const api = useApi();
  const query = linksQuery(runId);
  return (
    <LinkList
      links={useQuery(query)}
      queryKey={query.queryKey}
      revoke={(linkId) =>
        ask(api.DELETE("/api/runs/{id}/links", { params: { path: { id: runId }, query: { linkId } } }))
      }
      revocable={({ status }) => status === "active"}
      what={({ inviteId, allowCopy }) =>
        `${inviteId ? "Given to the guest who started the run" : "Results"}${allowCopy ? ", workflow can be copied" : ""}`
      }
      used={(link) => `viewed ${plural(link.views, "time")}`}
    />
  );
}
