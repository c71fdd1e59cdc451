import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Api, ask, type Schemas } from "../api/client.ts";
import { apiOf, useApi } from "../api/team.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Choice, Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Time } from "../ui/Time.tsx";
import { useAction } from "./actions.ts";

const noticeQuery = queryOptions({
  queryKey: ["operator", "notice"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/operator/notice")),
});

const maintenanceQuery = queryOptions({
  queryKey: ["operator", "maintenance"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/operator/maintenance")),
});

const setNotice = (api: Api, body: Schemas["OperatorNotice"]) => ask(api.PUT("/api/operator/notice", { body }));
const setMaintenance = (api: Api, body: Schemas["OperatorMaintenanceMode"]) =>
  ask(api.PUT("/api/operator/maintenance", { body }));

const levels = { info: "Information (people can dismiss it)", warning: "Warning" };
type Level = keyof typeof levels;

/** Announcements are what everybody who uses the installation is told, and whether new runs wait. */
export function Announcements() {
  const notice = useQuery(noticeQuery);
  const maintenance = useQuery(maintenanceQuery);
  return (
    <>
      <Section
        title="Notice"
        intro="Shown on every page, also to guests and people who sign in, and by the command line. Don't write secrets here."
      >
        <Answer query={notice} rows={1}>
          {(shown) => <NoticeForm key={shown.id} shown={shown} />}
        </Answer>
      </Section>
      <Section
        title="Maintenance mode"
        intro="While it is on, active runs continue, and new runs wait in the queue. Nothing is refused."
      >
        <Answer query={maintenance} rows={1}>
          {(mode) => <MaintenanceForm key={mode.since} mode={mode} />}
        </Answer>
      </Section>
    </>
  );
}

function NoticeForm({ shown }: { shown: Schemas["Notice"] }) {
  const api = useApi();
  const client = useQueryClient();
  const [text, setText] = useState(shown.text ?? "");
  const [level, setLevel] = useState<Level>(shown.level ?? "info");
  const [until, setUntil] = useState(shown.until ? localTime(shown.until) : "");
  const refresh = () => void client.invalidateQueries({ queryKey: ["notice"] });
  const set = useAction(
    () => setNotice(api, { text, level, until: until ? new Date(until).toISOString() : null }),
    "Everybody sees the notice within seconds",
    refresh,
  );
  const remove = useAction(() => setNotice(api, { text: null, level: "info" }), "Notice removed", refresh);
  return (
    <Form onSubmit={() => set.mutate(undefined)}>
      <Field
        label="Text"
        hint={
          shown.text ? (
            <>
              Shown {shown.until ? <Until at={shown.until} /> : "until you remove it"}. Showing it again shows it to
              people who dismissed it.
            </>
          ) : (
            "One line. There is no notice at the moment."
          )
        }
      >
        <Input required maxLength={500} value={text} onChange={(event) => setText(event.target.value)} />
      </Field>
      <div className="grid gap-3 sm:grid-cols-2">
        <Field label="Level">
          <Choice options={levels} value={level} onChange={setLevel} />
        </Field>
        <Field label="Ends" optional hint="In your time zone. Without it, the notice stays until you remove it.">
          <Input type="datetime-local" value={until} onChange={(event) => setUntil(event.target.value)} />
        </Field>
      </div>
      <div className="flex flex-wrap gap-2">
        <Button type="submit" busy={set.isPending} disabled={text.trim() === ""}>
          Show notice
        </Button>
        {shown.text && (
          <Button busy={remove.isPending} onClick={() => remove.mutate(undefined)}>
            Remove notice
          </Button>
        )}
      </div>
    </Form>
  );
}

/** localTime is a time as an input for it takes it, in the time zone of the browser. */
function localTime(at: string): string {
  const time = new Date(at);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function Until({ at }: { at: string }) {
  return (
    <>
      until <Time at={at} />
    </>
  );
}

function MaintenanceForm({ mode }: { mode: Schemas["OperatorMaintenance"] }) {
  const api = useApi();
  const [message, setMessage] = useState(mode.message ?? "");
  const on = useAction(
    () => setMaintenance(api, { on: true, message }),
    mode.on ? "Message changed" : "New runs wait until you turn maintenance mode off",
  );
  const off = useAction(() => setMaintenance(api, { on: false }), "New runs start again");
  return (
    <Form onSubmit={() => on.mutate(undefined)}>
      <Field
        label="Message"
        optional
        hint={
          mode.since ? (
            <>
              On since <Time at={mode.since} />. The message is on the pages of runs that wait.
            </>
          ) : (
            "One line for people whose runs wait."
          )
        }
      >
        <Input maxLength={500} value={message} onChange={(event) => setMessage(event.target.value)} />
      </Field>
      <div className="flex flex-wrap gap-2">
        {mode.on && (
          <Button busy={off.isPending} onClick={() => off.mutate(undefined)}>
            Turn off
          </Button>
        )}
        <Button type="submit" busy={on.isPending} disabled={mode.on && message === (mode.message ?? "")}>
          {mode.on ? "Change message" : "Turn on"}
        </Button>
      </div>
    </Form>
  );
}
