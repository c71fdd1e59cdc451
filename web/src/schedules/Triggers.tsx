import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useMe, useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Choice, Field, Input, Textarea } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { workflowQuery } from "../workflows/queries.ts";
import { readMap } from "./map.ts";
import { createTrigger, deleteTrigger, type Trigger, triggersQuery } from "./queries.ts";

/** Triggers are the secret addresses that start runs of a workflow. */
export function Triggers({ workflowId }: { workflowId: string }) {
  const triggers = useQuery(triggersQuery(workflowId));
  const whyNot = useWhyNot()("start runs");
  const [making, setMaking] = useState(false);
  return (
    <Section
      title="Triggers"
      actions={
        <Button
          size="sm"
          icon={<Plus className="size-4" aria-hidden />}
          disabledReason={whyNot}
          onClick={() => setMaking(true)}
        >
          New trigger
        </Button>
      }
    >
      <Answer query={triggers} rows={2}>
        {(list) =>
          list.length === 0 ? (
            <p className="text-sm text-muted">
              No triggers yet. A trigger is a secret URL. When another program sends a request to it, a run starts.
            </p>
          ) : (
            <ul className="divide-y rounded-lg border bg-surface">
              {list.map((trigger) => (
                <TriggerRow key={trigger.id} trigger={trigger} />
              ))}
            </ul>
          )
        }
      </Answer>
      {making && <NewTrigger workflowId={workflowId} onClose={() => setMaking(false)} />}
    </Section>
  );
}

function TriggerRow({ trigger }: { trigger: Trigger }) {
  const api = useApi();
  const me = useMe();
  const may = useWhyNot();
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: () => deleteTrigger(api, trigger),
    onSuccess: () => toast.ok("Trigger deleted"),
    onSettled: () => client.invalidateQueries({ queryKey: triggersQuery(trigger.workflowId).queryKey }),
  });
  const whyNot =
    trigger.createdBy.id === me.id
      ? may("start runs")
      : may("cancel any run") && "Only admins and owners can delete someone else's trigger.";
  return (
    <li className="flex flex-wrap items-center justify-between gap-2 px-3 py-2 text-sm">
      <span>
        <code>…{trigger.tokenHint}</code>, by {trigger.createdBy.name}
        {trigger.action === "refresh" && ", refreshes from Git"}
        {trigger.signed && ", signed"}, last used {trigger.lastUsedAt ? <Time at={trigger.lastUsedAt} /> : "never"}
      </span>
      <Button
        size="sm"
        look="danger-quiet"
        busy={end.isPending}
        disabledReason={whyNot}
        aria-label={`Delete the trigger ending in ${trigger.tokenHint}`}
        onClick={() => end.mutate()}
      >
        Delete
      </Button>
    </li>
  );
}

function NewTrigger({ workflowId, onClose }: { workflowId: string; onClose: () => void }) {
  const api = useApi();
  const [map, setMap] = useState("");
  const [secret, setSecret] = useState("");
  const [action, setAction] = useState<"run" | "refresh">("run");
  const follows = useQuery(workflowQuery(workflowId)).data?.git !== undefined;
  const client = useQueryClient();
  const read = readMap(map);
  const make = useMutation({
    mutationFn: () =>
      createTrigger(api, workflowId, {
        action,
        ...(read.map && action === "run" && { map: read.map }),
        ...(secret && { secret }),
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: triggersQuery(workflowId).queryKey }),
    meta: { shown: true },
  });
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="New trigger"
      description={
        action === "run"
          ? "Anyone with the URL can start runs of this workflow as you."
          : "Add the URL to your Git host as a webhook for pushes, with the content type application/json."
      }
    >
      {make.data ? (
        <div className="space-y-3">
          <Notice tone="ok" title="Trigger created">
            The URL is shown only once. Send it a POST request with a JSON body.
          </Notice>
          <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
            <code className="min-w-0 flex-1 break-all">{make.data.url}</code>
            <Copy text={make.data.url} label="Copy URL" />
          </div>
          <Button onClick={onClose}>Done</Button>
        </div>
      ) : (
        <Form onSubmit={() => read.error === null && make.mutate()}>
          {follows && (
            <Field
              label="Action"
              hint={
                action === "refresh" && "Schedules use the pushed version once a member has refreshed or confirmed it."
              }
            >
              <Choice
                options={{ run: "Start a run", refresh: "Refresh the workflow from Git" }}
                value={action}
                onChange={setAction}
              />
            </Field>
          )}
          {action === "run" && (
            <Field
              label="Parameters from the body"
              optional
              error={read.error}
              hint="One per line, such as version = /release/tag_name. Leave it empty to use the fields of the body as parameters."
            >
              <Textarea
                value={map}
                onChange={(event) => setMap(event.target.value)}
                className="font-mono"
                spellCheck={false}
                autoComplete="off"
              />
            </Field>
          )}
          <Field
            label="Secret"
            optional
            hint="If set, requests must be signed with the header X-Hub-Signature-256, as GitHub does."
          >
            <Input
              value={secret}
              onChange={(event) => setSecret(event.target.value)}
              className="font-mono"
              autoComplete="off"
              spellCheck={false}
              minLength={8}
              maxLength={255}
            />
          </Field>
          {make.error && <Problem error={make.error} />}
          <Button type="submit" look="primary" busy={make.isPending}>
            Create trigger
          </Button>
        </Form>
      )}
    </Dialog>
  );
}
