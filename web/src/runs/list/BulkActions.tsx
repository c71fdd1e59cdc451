import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Ban, Download, GitCompare, Tag, Trash2 } from "lucide-react";
import { useState } from "react";
import { ask } from "../../api/client.ts";
import { useApi } from "../../api/team.ts";
import { may } from "../../identity/access.ts";
import { useMe, useWhyNot } from "../../identity/queries.ts";
import { active } from "../../page/status.tsx";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { ConfirmDialog, Dialog } from "../../ui/Dialog.tsx";
import { save } from "../../ui/download.ts";
import { Field, Input } from "../../ui/Field.tsx";
import { Form } from "../../ui/Form.tsx";
import { plural } from "../../ui/format.ts";
import { readTags } from "../../ui/readTags.ts";
import { toast } from "../../ui/toast.ts";
import { cancelRun, type RunRow } from "../queries.ts";
import { inBatches, outcome, runsCsv } from "./bulk.ts";

/** BulkActions shows the actions for the selected runs. */
export function BulkActions({ runs, clear }: { runs: RunRow[]; clear: () => void }) {
  const api = useApi();
  const [open, setOpen] = useState<"tag" | "delete" | null>(null);
  const me = useMe();
  const whyNot = useWhyNot();
  const client = useQueryClient();
  const ours = runs.filter((run) => may(me.team.role, "cancel any run") || run.startedBy.id === me.id);
  const going = ours.filter((run) => active(run.status));
  const ended = ours.filter((run) => !active(run.status));
  const act = useMutation({
    mutationFn: async ({
      list,
      said,
      each,
    }: {
      list: RunRow[];
      said: string;
      each: (run: RunRow) => Promise<unknown>;
    }) => ({
      said,
      ...outcome(await inBatches(list, each)),
    }),
    onSuccess: ({ said, failed, why }) => {
      if (failed > 0) toast.error(`${plural(failed, "run")}: ${why}`);
      else toast.ok(said);
      clear();
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["runs"] }),
  });
  const none = (what: string) =>
    whyNot("start runs") ?? `None of the selected runs ${what}, or you don't have permission.`;
  return (
    <div className="flex flex-wrap items-center gap-2">
      {runs.length === 2 && (
        <Link to="/runs/compare" search={pair(runs)} className={buttonClass("secondary", "sm")}>
          <GitCompare className="size-4" aria-hidden /> Compare
        </Link>
      )}
      <Button
        size="sm"
        icon={<Download className="size-4" aria-hidden />}
        onClick={() => save("millrace-runs.csv", runsCsv(runs), "text/csv")}
      >
        CSV
      </Button>
      <Button
        size="sm"
        icon={<Tag className="size-4" aria-hidden />}
        disabledReason={ours.length > 0 ? null : none("can be tagged")}
        onClick={() => setOpen("tag")}
      >
        Tag
      </Button>
      <Button
        size="sm"
        look="danger-quiet"
        icon={<Ban className="size-4" aria-hidden />}
        busy={act.isPending}
        disabledReason={going.length > 0 ? null : none("is active")}
        onClick={() =>
          act.mutate({
            list: going,
            said: `Cancelling ${plural(going.length, "run")}`,
            each: (run) => cancelRun(api, run.id),
          })
        }
      >
        Cancel {plural(going.length, "run")}
      </Button>
      <Button
        size="sm"
        look="danger-quiet"
        icon={<Trash2 className="size-4" aria-hidden />}
        disabledReason={ended.length > 0 ? null : none("has ended")}
        onClick={() => setOpen("delete")}
      >
        Delete
      </Button>
      {open === "tag" && (
        <TagDialog
          runs={ours}
          onClose={() => setOpen(null)}
          onTags={(add) => {
            setOpen(null);
            act.mutate({
              list: ours,
              said: `Tagged ${plural(ours.length, "run")}`,
              each: (run) =>
                ask(
                  api.PATCH("/api/runs/{id}", {
                    params: { path: { id: run.id } },
                    body: { tags: [...new Set([...run.tags, ...add])] },
                  }),
                ),
            });
          }}
        />
      )}
      <ConfirmDialog
        open={open === "delete"}
        onOpenChange={() => setOpen(null)}
        title={`Delete ${plural(ended.length, "run")}?`}
        action={`Delete ${plural(ended.length, "run")}`}
        onConfirm={() => {
          setOpen(null);
          act.mutate({
            list: ended,
            said: `Deleted ${plural(ended.length, "run")}`,
            each: (run) => ask(api.DELETE("/api/runs/{id}", { params: { path: { id: run.id } } })),
          });
        }}
      >
        Their logs, events and outputs are deleted permanently. Their cost stays in the usage.
        {ended.length < runs.length && " Active runs and other people's runs are kept."}
      </ConfirmDialog>
    </div>
  );
}

/** pair is two runs to compare, the older one first. */
function pair([b, a]: RunRow[]): { a?: string; b?: string } {
  return { ...(a && { a: a.id }), ...(b && { b: b.id }) };
}

function TagDialog({
  runs,
  onClose,
  onTags,
}: {
  runs: RunRow[];
  onClose: () => void;
  onTags: (tags: string[]) => void;
}) {
  const [text, setText] = useState("");
  const { tags, error } = readTags(text);
  return (
    <Dialog open onOpenChange={onClose} title={`Tag ${plural(runs.length, "run")}`}>
      <Form onSubmit={() => error ?? onTags(tags)}>
        <Field label="Tags to add" hint="Separate tags with spaces." error={error}>
          <Input
            autoFocus
            placeholder="pilot grant:2026"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </Field>
        <footer className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          <Button
            type="submit"
            look="primary"
            disabledReason={error ?? (tags.length === 0 ? "Type a tag first." : null)}
          >
            Add
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}
