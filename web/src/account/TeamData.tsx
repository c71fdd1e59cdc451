import { useMutation } from "@tanstack/react-query";
import { Download, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { enterTeam } from "../api/team.ts";
import { Problem } from "../app/ErrorPage.tsx";
import { Section } from "../app/Page.tsx";
import { useMe, useWhyNot } from "../identity/queries.ts";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { ConfirmDialog } from "../ui/Dialog.tsx";
import { save } from "../ui/download.ts";
import { bytes } from "../ui/format.ts";
import { Progress } from "../ui/Progress.tsx";
import { toast } from "../ui/toast.ts";
import { downloadExport } from "./export.ts";
import { eraseTeam } from "./queries.ts";

/** TeamData takes a team's data out, or away. */
export function TeamData() {
  return (
    <>
      <Export />
      <Erase />
    </>
  );
}

function Export() {
  const { team } = useMe();
  const whyNot = useWhyNot()("export the team");
  const [read, setRead] = useState(0);
  const stop = useRef<AbortController | null>(null);
  const load = useMutation({
    mutationFn: async () => {
      setRead(0);
      stop.current = new AbortController();
      return downloadExport(setRead, stop.current.signal);
    },
    onSuccess: (blob) => {
      save(`millrace-${team.name}-${new Date().toISOString().slice(0, 10)}.json`, blob, "application/json");
      toast.ok(`Exported ${bytes(blob.size)}`);
    },
    meta: { shown: true },
  });
  const cancelled = stop.current?.signal.aborted === true;
  return (
    <Section
      title="Export the team's data"
      intro="One JSON file with the team, its members, workflows, runs with their events, usage, invoices, analyses and share links. Files are listed with their hashes and links that work for a quarter of an hour."
    >
      <div className="max-w-md space-y-3">
        {load.isPending ? (
          <>
            <p role="status" className="tabular text-sm">
              {bytes(read)} so far…
            </p>
            <Progress value={null} label="Export" />
            <Button size="sm" onClick={() => stop.current?.abort()}>
              Cancel
            </Button>
          </>
        ) : (
          <Button
            icon={<Download className="size-4" aria-hidden />}
            disabledReason={whyNot}
            onClick={() => load.mutate()}
          >
            Export {team.name}
          </Button>
        )}
        {load.error && !cancelled && <Problem error={load.error} />}
      </div>
    </Section>
  );
}

function Erase() {
  const { team } = useMe();
  const whyNot = useWhyNot()("erase the team");
  const [asking, setAsking] = useState(false);
  const erase = useMutation({
    mutationFn: () => eraseTeam(team.id),
    onSuccess: () => {
      enterTeam(null);
      location.assign("/workflows");
    },
    meta: { shown: true },
  });
  return (
    <Section title="Erase the team's data" intro="For good. Your account, and other teams that you are in, stay.">
      <Button
        look="danger"
        icon={<Trash2 className="size-4" aria-hidden />}
        disabledReason={whyNot}
        onClick={() => setAsking(true)}
      >
        Erase {team.name}
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={(open) => {
          erase.reset();
          setAsking(open);
        }}
        title={`Erase ${team.name}?`}
        action="Erase everything"
        phrase={team.id}
        phraseLabel="To confirm, type the team's id"
        busy={erase.isPending}
        onConfirm={() => erase.mutate()}
      >
        <p>
          <strong>Gone at once and for good:</strong> all workflows and their versions, runs with logs and outputs,
          uploaded files, credits, share links, analyses, memberships and invitations. Runs that still go on are
          cancelled.
        </p>
        <p>
          <strong>What stays:</strong> people's accounts, and invoices that the payment provider must keep by law.
        </p>
        <p className="flex items-center gap-1">
          The team's id is <code className="rounded bg-sunken px-1.5 py-0.5 break-all select-all">{team.id}</code>{" "}
          <Copy text={team.id} label="Copy the team's id" />
        </p>
        {erase.error && <Problem error={erase.error} />}
      </ConfirmDialog>
    </Section>
  );
}
