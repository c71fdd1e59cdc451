import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { Link, type LinkProps } from "@tanstack/react-router";
import { Download, ScrollText } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Page } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Field, Select } from "../ui/Field.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { type AuditEntry, type AuditFilter, auditQuery, downloadAudit } from "./queries.ts";

type Actor = AuditEntry["actor"];

const subjects = {
  "": "All subjects",
  "session.": "Sign-ins",
  "member.": "Members",
  "invitation.": "Invitations",
  "token.": "Tokens",
  "service_account.": "Service accounts",
  "secret.": "Secrets",
  "share_link.": "Share links",
  "workflow.": "Workflows",
  "run.": "Runs",
  "file.": "Files",
  "topup.": "Top-ups",
  "team.": "Team",
  "operator.": "Operator",
};

const spans = { "": "Any time", "1": "Last day", "7": "Last 7 days", "30": "Last 30 days" };

/** AuditPage is what was done in the team, by whom and from where. */
export function AuditPage() {
  const api = useApi();
  const whyNot = useWhyNot()("manage members") && "Only admins and owners can read the audit log.";
  const [actor, setActor] = useState<Actor | null>(null);
  const [action, setAction] = useState("");
  const [days, setDays] = useState("");
  const [since, setSince] = useState("");
  const filter: AuditFilter = {
    ...(actor?.id && { actor: actor.id }),
    ...(action && { action }),
    ...(since && { since }),
  };
  const entries = useInfiniteQuery({ ...auditQuery(filter), enabled: whyNot === null });
  const download = useMutation({ mutationFn: (format: "csv" | "jsonl") => downloadAudit(api, filter, format) });
  return (
    <Page
      title="Audit log"
      intro="Who did what in this team, when and from where. Entries can't be edited; each contains the hash of the one before."
      actions={
        whyNot === null &&
        (["csv", "jsonl"] as const).map((format) => (
          <Button
            key={format}
            icon={<Download className="size-4" aria-hidden />}
            busy={download.isPending && download.variables === format}
            onClick={() => download.mutate(format)}
          >
            {format.toUpperCase()}
          </Button>
        ))
      }
    >
      {whyNot ? (
        <Notice>{whyNot}</Notice>
      ) : (
        <>
          <div className="mb-4 grid max-w-lg gap-3 sm:grid-cols-2">
            <Field label="Subject">
              <Select value={action} onChange={(event) => setAction(event.target.value)}>
                {Object.entries(subjects).map(([value, words]) => (
                  <option key={value} value={value}>
                    {words}
                  </option>
                ))}
              </Select>
            </Field>
            <Field label="Period">
              <Select
                value={days}
                onChange={(event) => {
                  const span = event.target.value;
                  setDays(span);
                  setSince(span && new Date(Date.now() - Number(span) * 86_400_000).toISOString());
                }}
              >
                {Object.entries(spans).map(([value, words]) => (
                  <option key={value} value={value}>
                    {words}
                  </option>
                ))}
              </Select>
            </Field>
          </div>
          {actor && (
            <p className="mb-4">
              Only actions by {actor.name}.{" "}
              <Button size="sm" onClick={() => setActor(null)}>
                Show everyone
              </Button>
            </p>
          )}
          <Answer query={entries}>
            {({ pages }) => {
              const list = pages.flatMap((page) => page.rows);
              return list.length === 0 ? (
                <Empty icon={<ScrollText aria-hidden />} title="No entries">
                  {action || since || actor ? "No entry matches these filters." : "Actions in this team appear here."}
                </Empty>
              ) : (
                <Entries list={list} onActor={setActor} />
              );
            }}
          </Answer>
          {entries.hasNextPage && (
            <Button className="mt-4" busy={entries.isFetchingNextPage} onClick={() => void entries.fetchNextPage()}>
              Show older entries
            </Button>
          )}
        </>
      )}
    </Page>
  );
}

function Entries({ list, onActor }: { list: AuditEntry[]; onActor: (actor: Actor) => void }) {
  return (
    <Table
      label="Audit log"
      head={
        <>
          <Th>When</Th>
          <Th>Who</Th>
          <Th>What</Th>
          <Th className="max-md:hidden">From</Th>
        </>
      }
    >
      {list.map((entry) => (
        <tr key={entry.seq}>
          <Td className="whitespace-nowrap">
            <Time at={entry.at} />
          </Td>
          <Td>
            {entry.actor.id && entry.actor.name ? (
              <button
                type="button"
                className="underline-offset-2 hover:underline"
                title={`Show only actions by ${entry.actor.name}`}
                onClick={() => onActor(entry.actor)}
              >
                {entry.actor.name}
              </button>
            ) : (
              entry.actor.type
            )}
            {entry.actor.type !== "user" && entry.actor.name && (
              <span className="text-muted"> ({entry.actor.type})</span>
            )}
          </Td>
          <Td className="break-all">
            {entry.action.replaceAll(/[._]/g, " ")}
            <Target entry={entry} />
          </Td>
          <Td className="max-md:hidden">
            {entry.address ?? "–"}
            {entry.via && entry.via !== "session" && <span className="text-[13px] text-muted"> via {entry.via}</span>}
          </Td>
        </tr>
      ))}
    </Table>
  );
}

/** Target names what something was done to, with a link to its page if it is still there. */
function Target({ entry }: { entry: AuditEntry }) {
  const { target, targetName } = entry;
  if (!target) return null;
  if (!targetName) return <code className="ml-1.5 text-[13px] text-muted">{target}</code>;
  const page = entry.targetExists && pageOf(entry.action, target);
  if (page)
    return (
      <Link className="ml-1.5 underline underline-offset-2" title={target} {...page}>
        {targetName}
      </Link>
    );
  return (
    <span className="ml-1.5 text-muted" title={target}>
      {targetName}
    </span>
  );
}

/** pageOf is the page that shows a target; null: there is none. */
function pageOf(action: string, target: string): LinkProps | null {
  switch (target.slice(0, target.indexOf("_") + 1)) {
    case "wf_":
      return { to: "/workflows/$workflowId", params: { workflowId: target } };
    case "run_":
      return { to: "/runs/$runId", params: { runId: target } };
    case "swp_":
      return { to: "/runs/sweeps/$sweepId", params: { sweepId: target } };
    case "an_":
      return { to: "/papers", search: { id: target } };
    case "conn_":
      return { to: "/connections" };
    case "whk_":
      return { to: "/team/webhooks" };
    case "user_":
      return { to: "/team" };
    default:
      if (action.startsWith("invitation.")) return { to: "/team" };
      return action.startsWith("file.") ? { to: "/files", search: { preview: target } } : null;
  }
}
