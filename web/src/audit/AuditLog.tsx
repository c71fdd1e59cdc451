import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import { Link, type LinkProps } from "@tanstack/react-router";
import { ScrollText } from "lucide-react";
import { Answer } from "../page/Answer.tsx";
import { Button } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Choice, Field } from "../ui/Field.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import type { AuditEntry, AuditFilter } from "./queries.ts";

type Actor = AuditEntry["actor"];

/** Chosen is what somebody wants to see of an audit log. */
export interface Chosen {
  actor: Actor | null;
  action: string;
  days: string;
  since: string;
}

export const everything: Chosen = { actor: null, action: "", days: "", since: "" };

export const filterOf = ({ actor, action, since }: Chosen): AuditFilter => ({
  ...(actor?.id && { actor: actor.id }),
  ...(action && { action }),
  ...(since && { since }),
});

const spans = { "": "Any time", "1": "Last day", "7": "Last 7 days", "30": "Last 30 days" };

interface AuditLogProps {
  entries: UseInfiniteQueryResult<InfiniteData<{ rows: AuditEntry[] }>>;
  /** The beginnings of actions, and what people call them. */
  subjects: Record<string, string>;
  chosen: Chosen;
  onChoose: (chosen: Chosen) => void;
  /** What appears here, while there is nothing. */
  empty: string;
}

/** AuditLog shows the entries of an audit log, newest first, and narrows them. */
export function AuditLog({ entries, subjects, chosen, onChoose, empty }: AuditLogProps) {
  const { actor, action, days, since } = chosen;
  return (
    <>
      <div className="mb-4 grid max-w-lg gap-3 sm:grid-cols-2">
        <Field label="Subject">
          <Choice options={subjects} value={action} onChange={(value) => onChoose({ ...chosen, action: value })} />
        </Field>
        <Field label="Period">
          <Choice
            options={spans}
            value={days as keyof typeof spans}
            onChange={(span) =>
              onChoose({
                ...chosen,
                days: span,
                since: span && new Date(Date.now() - Number(span) * 86_400_000).toISOString(),
              })
            }
          />
        </Field>
      </div>
      {actor && (
        <p className="mb-4">
          Only actions by {actor.name}.{" "}
          <Button size="sm" onClick={() => onChoose({ ...chosen, actor: null })}>
            Show everyone
          </Button>
        </p>
      )}
      <Answer query={entries}>
        {({ pages }) => {
          const list = pages.flatMap((page) => page.rows);
          return list.length === 0 ? (
            <Empty icon={<ScrollText aria-hidden />} title="No entries">
              {action || since || actor ? "No entry matches these filters." : empty}
            </Empty>
          ) : (
            <Entries list={list} onActor={(by) => onChoose({ ...chosen, actor: by })} />
          );
        }}
      </Answer>
      {entries.hasNextPage && (
        <Button className="mt-4" busy={entries.isFetchingNextPage} onClick={() => void entries.fetchNextPage()}>
          Show older entries
        </Button>
      )}
    </>
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
