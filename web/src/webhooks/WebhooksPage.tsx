import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, Webhook as WebhookIcon } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Page } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { ConfirmDialog, Dialog } from "../ui/Dialog.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Checkbox, Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { Deliveries } from "./Deliveries.tsx";
import { FormatFields } from "./FormatFields.tsx";
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  events,
  type Format,
  formats,
  testWebhook,
  type Webhook,
  webhooksQuery,
} from "./queries.ts";

/** WebhooksPage is the addresses that are told of what happens to the team's runs. */
export function WebhooksPage() {
  const whyNot = useWhyNot()("manage webhooks");
  const webhooks = useQuery({ ...webhooksQuery, enabled: whyNot === null });
  const [making, setMaking] = useState(false);
  const add = (
    <Button
      look="primary"
      icon={<Plus className="size-4" aria-hidden />}
      disabledReason={whyNot}
      onClick={() => setMaking(true)}
    >
      New webhook
    </Button>
  );
  return (
    <Page
      title="Webhooks"
      intro="Send signed HTTP requests when runs start or finish. Retries for 24 hours."
      actions={webhooks.data?.length ? add : null}
    >
      {whyNot ? (
        <Notice>{whyNot}</Notice>
      ) : (
        <Answer query={webhooks} rows={3}>
          {(list) =>
            list.length === 0 ? (
              <Empty icon={<WebhookIcon aria-hidden />} title="No webhooks yet" actions={add}>
                Notify your own service or a chat channel when a run fails.
              </Empty>
            ) : (
              <ul className="space-y-3">
                {list.map((webhook) => (
                  <WebhookCard key={webhook.id} webhook={webhook} />
                ))}
              </ul>
            )
          }
        </Answer>
      )}
      {making && <NewWebhook onClose={() => setMaking(false)} />}
    </Page>
  );
}

function WebhookCard({ webhook }: { webhook: Webhook }) {
  const api = useApi();
  const client = useQueryClient();
  const [deleting, setDeleting] = useState(false);
  const [shown, setShown] = useState(false);
  const refresh = () => client.invalidateQueries({ queryKey: webhooksQuery.queryKey });
  const change = useMutation({
    mutationFn: (enabled: boolean) => changeWebhook(api, webhook.id, { enabled }),
    onSettled: refresh,
  });
  const end = useMutation({
    mutationFn: () => deleteWebhook(api, webhook.id),
    onSuccess: () => toast.ok("Webhook deleted"),
    onSettled: refresh,
  });
  const test = useMutation({
    mutationFn: () => testWebhook(api, webhook.id),
    onSuccess: (delivery) => {
      if (delivery.status === "delivered") toast.ok(`The server responded with status ${delivery.responseStatus}`);
      else toast.error(delivery.error ?? "The message was not delivered");
    },
    onSettled: refresh,
  });
  return (
    <li className="rounded-lg border bg-surface p-4">
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div className="min-w-0">
          <p className="flex flex-wrap items-center gap-2">
            <code className="break-all font-medium">{webhook.url}</code>
            <Pill tone={webhook.enabled && !webhook.paused ? "ok" : "neutral"}>
              {!webhook.enabled ? "off" : webhook.paused ? "paused" : "on"}
            </Pill>
          </p>
          <p className="mt-1 text-sm text-muted">
            {webhook.events.length > 0 ? webhook.events.join(", ") : "all events"}
            {webhook.format !== "standard" && `, for ${formats[webhook.format]}`}, by {webhook.createdBy.name}
          </p>
        </div>
        <div className="flex flex-wrap gap-2">
          <Button size="sm" busy={test.isPending} onClick={() => test.mutate()}>
            Test
          </Button>
          <Button size="sm" onClick={() => setShown(true)}>
            Deliveries
          </Button>
          <Button size="sm" busy={change.isPending} onClick={() => change.mutate(!webhook.enabled)}>
            {webhook.enabled ? "Turn off" : "Turn on"}
          </Button>
          <Button size="sm" look="danger-quiet" onClick={() => setDeleting(true)}>
            Delete
          </Button>
        </div>
      </div>
      {webhook.disabledReason && (
        <Notice tone="warn" title="Turned off">
          {webhook.disabledReason}
        </Notice>
      )}
      {webhook.enabled && webhook.paused && (
        <Notice tone="warn" title="Paused">
          {webhook.paused.message} Next attempt: <Time at={webhook.paused.until} />.{" "}
          <Button size="sm" busy={change.isPending} onClick={() => change.mutate(true)}>
            Resume now
          </Button>
        </Notice>
      )}
      {shown && <Deliveries webhook={webhook} onClose={() => setShown(false)} />}
      <ConfirmDialog
        open={deleting}
        onOpenChange={setDeleting}
        title="Delete this webhook?"
        action="Delete webhook"
        onConfirm={() => {
          end.mutate();
          setDeleting(false);
        }}
      >
        Pending messages aren't sent.
      </ConfirmDialog>
    </li>
  );
}

function NewWebhook({ onClose }: { onClose: () => void }) {
  const api = useApi();
  const [url, setURL] = useState("");
  const [chosen, setChosen] = useState<(typeof events)[number][]>(["run.completed", "run.failed", "run.interrupted"]);
  const [written, setWritten] = useState<{ format: Format; template: string }>({ format: "standard", template: "" });
  const client = useQueryClient();
  const make = useMutation({
    mutationFn: () =>
      createWebhook(api, { url, events: chosen, format: written.format, template: written.template || null }),
    onSuccess: () => client.invalidateQueries({ queryKey: webhooksQuery.queryKey }),
    meta: { shown: true },
  });
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="New webhook">
      {make.data ? (
        <div className="space-y-3">
          <Notice tone="ok" title="Webhook created">
            Use this secret to verify messages. It's shown only once.
          </Notice>
          <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3">
            <code className="min-w-0 flex-1 break-all">{make.data.secret}</code>
            <Copy text={make.data.secret} label="Copy secret" />
          </div>
          <Button onClick={onClose}>Done</Button>
        </div>
      ) : (
        <Form onSubmit={() => make.mutate()}>
          <Field label="URL" hint="Must be a public HTTPS URL.">
            <Input type="url" value={url} onChange={(event) => setURL(event.target.value)} required autoFocus />
          </Field>
          <fieldset className="space-y-1">
            <legend className="mb-1 text-sm font-medium">Events</legend>
            {events.map((name) => (
              <Checkbox
                key={name}
                label={name}
                checked={chosen.includes(name)}
                onChange={(event) =>
                  setChosen((old) => (event.target.checked ? [...old, name] : old.filter((each) => each !== name)))
                }
              />
            ))}
          </fieldset>
          <FormatFields {...written} onChange={(format, template) => setWritten({ format, template })} />
          {make.error && <Problem error={make.error} />}
          <Button
            type="submit"
            look="primary"
            busy={make.isPending}
            disabledReason={chosen.length === 0 ? "Choose an event." : null}
          >
            Create webhook
          </Button>
        </Form>
      )}
    </Dialog>
  );
}
