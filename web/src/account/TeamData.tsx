import { useMutation } from "@tanstack/react-query";
import { Download, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { useApi, useTeams } from "../api/team.ts";
import { useMe, useWhyNot } from "../identity/queries.ts";
import { Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
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
  const api = useApi();
  const { team } = useMe();
  const whyNot = useWhyNot()("export the team");
  const [read, setRead] = useState(0);
  const stop = useRef<AbortController | null>(null);
  const load = useMutation({
    mutationFn: async () => {
      setRead(0);
      stop.current = new AbortController();
      return downloadExport(api, setRead, stop.current.signal);
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
      title="Export team data"
      intro="One JSON file with the team, its members, workflows, runs with their events, usage, invoices, analyses and share links. Files are listed with their checksums and download links that work for 15 minutes."
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
        {load.error && !cancelled && <Problem title="Couldn't export" error={load.error} />}
      </div>
    </Section>
  );
}

function Erase() {
  const api = useApi();
  const teams = useTeams();
  const { team } = useMe();
  const whyNot = useWhyNot()("erase the team");
  const [asking, setAsking] = useState(false);
  const erase = useMutation({
    mutationFn: () => eraseTeam(api, team.id),
    onSuccess: () => {
      teams.enter(null);
      location.assign("/workflows");
    },
    meta: { shown: true },
  });
  return (
    <Section title="Erase team data" intro="This can't be undone. Your account and your other teams are kept.">
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
        phraseLabel="To confirm, type the team ID"
        busy={erase.isPending}
        onConfirm={() => erase.mutate()}
      >
        <p>
          <strong>Deleted immediately and permanently:</strong> all workflows and their versions, runs with logs and
          outputs, uploaded files, credits, share links, analyses, memberships and invitations. Active runs are
          cancelled.
        </p>
        <p>
          <strong>Kept:</strong> people's accounts, and invoices the payment provider must keep by law.
        </p>
        <p className="flex items-center gap-1">
          Team ID: <code className="rounded bg-sunken px-1.5 py-0.5 break-all select-all">{team.id}</code>{" "}
          <Copy text={team.id} label="Copy team ID" />
        </p>
        {erase.error && <Problem title="Couldn't erase" error={erase.error} />}
      </ConfirmDialog>
    </Section>
  );
}
