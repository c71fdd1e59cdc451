import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ask, once, type Schemas } from "../../api/client.ts";
import { apiOf, useApi } from "../../api/team.ts";
import { useWhyNot } from "../../identity/queries.ts";
import { Answer } from "../../page/Answer.tsx";
import { Problem } from "../../page/Problem.tsx";
import { Button } from "../../ui/Button.tsx";
import { Copy } from "../../ui/Copy.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Checkbox, Choice, Field } from "../../ui/Field.tsx";
import { Form } from "../../ui/Form.tsx";
import { plural } from "../../ui/format.ts";
import { Notice, type Tone } from "../../ui/Notice.tsx";
import { Pill } from "../../ui/Pill.tsx";
import { Time } from "../../ui/Time.tsx";

type ResultLink = Schemas["ResultLink"];

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
          <NewLink run={run} />
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

function NewLink({ run }: { run: ResultLinksProps["run"] }) {
  const api = useApi();
  const [hours, setHours] = useState<"24" | "168" | "720">("168");
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
  if (make.data) {
    return (
      <div className="space-y-3">
        <Notice tone="ok" title="Link created">
          It's shown only once. It expires <Time at={make.data.expiresAt} />.
        </Notice>
        <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
          <code className="min-w-0 flex-1 break-all">{make.data.link}</code>
          <Copy text={make.data.link} label="Copy link" />
        </div>
        <Button size="sm" onClick={() => make.reset()}>
          Create another link
        </Button>
      </div>
    );
  }
  const names = Object.keys(run.parameters).toSorted();
  return (
    <Form onSubmit={() => make.mutate()}>
      <Field label="Expires after">
        <Choice options={{ "24": "1 day", "168": "7 days", "720": "30 days" }} value={hours} onChange={setHours} />
      </Field>
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

const tones: Record<ResultLink["status"], Tone> = { active: "ok", expired: "neutral", revoked: "neutral" };

function Links({ runId }: { runId: string }) {
  const api = useApi();
  const links = useQuery(linksQuery(runId));
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: (linkId: string) =>
      ask(api.DELETE("/api/runs/{id}/links", { params: { path: { id: runId }, query: { linkId } } })),
    onSettled: () => client.invalidateQueries({ queryKey: linksQuery(runId).queryKey }),
  });
  return (
    <section>
      <h2 className="mb-2">Links</h2>
      <Answer query={links}>
        {(list) =>
          list.length === 0 ? (
            <p className="text-sm text-muted">No links.</p>
          ) : (
            <ul className="divide-y rounded-lg border">
              {list.map((link) => (
                <li key={link.id} className="flex flex-wrap items-center justify-between gap-2 px-3 py-2 text-sm">
                  <span>
                    <Pill tone={tones[link.status]}>{link.status}</Pill> ends in {link.tokenHint} · created by{" "}
                    {link.createdBy.name} · viewed {plural(link.views, "time")} · expires <Time at={link.expiresAt} />
                    {link.allowCopy && " · workflow can be copied"}
                    {link.inviteId && " · given to the guest who started the run"}
                  </span>
                  {link.status === "active" && (
                    <Button
                      size="sm"
                      look="danger-quiet"
                      busy={revoke.isPending && revoke.variables === link.id}
                      onClick={() => revoke.mutate(link.id)}
                    >
                      Revoke
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </section>
  );
}
