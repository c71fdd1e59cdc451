import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { CalendarClock, Copy, Download, EllipsisVertical, FolderInput, Play, Tag, Trash2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { ask } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { may } from "../identity/access.ts";
import { useMe, useWhyNot } from "../identity/queries.ts";
import { Favorite } from "../page/Favorite.tsx";
import { IconButton } from "../ui/Button.tsx";
import { ConfirmDialog } from "../ui/Dialog.tsx";
import { save } from "../ui/download.ts";
import { Checkbox } from "../ui/Field.tsx";
import { plural } from "../ui/format.ts";
import { Menu, MenuItem, MenuLine } from "../ui/Menu.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Td } from "../ui/Table.tsx";
import { Tags } from "../ui/Tags.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { LastRuns } from "./LastRuns.tsx";
import { createWorkflow, deleteWorkflow, type WorkflowRow } from "./queries.ts";

const TagsDialog = lazy(async () => ({ default: (await import("./TagsDialog.tsx")).TagsDialog }));

interface RowProps {
  row: WorkflowRow;
  favorite: boolean;
  ticked: boolean;
  tick: (on: boolean) => void;
  move: () => void;
}

/** WorkflowTableRow is a workflow in the list, with what can be done to it there. */
export function WorkflowTableRow({ row, favorite, ticked, tick, move }: RowProps) {
  const api = useApi();
  const me = useMe();
  const whyNot = useWhyNot();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [deleting, setDeleting] = useState(false);
  const refresh = () => client.invalidateQueries({ queryKey: ["workflows"] });
  const [tagging, setTagging] = useState(false);
  const remove = useMutation({
    mutationFn: () => deleteWorkflow(api, row.id),
    onSuccess: () => {
      setDeleting(false);
      toast.ok(`Deleted ${row.name}`);
    },
    onSettled: refresh,
  });
  const load = () => ask(api.GET("/api/workflows/{id}", { params: { path: { id: row.id } } }));
  const duplicate = useMutation({
    mutationFn: async () => {
      const { name, description, license, definition } = await load();
      return createWorkflow(api, { name: `${name} (copy)`, description, license, definition });
    },
    onSuccess: (copy) => toast.ok(`Created ${copy.name}`),
    onSettled: refresh,
  });
  const download = useMutation({
    mutationFn: async () => {
      const { name, description, license, definition } = await load();
      const file = { name, description, ...(license && { license }), definition };
      save(`${name}.workflow.json`, JSON.stringify(file, null, 2), "application/json");
    },
  });
  const mayDelete =
    row.createdBy.id === me.id
      ? whyNot("edit workflows")
      : may(me.team.role, "delete any workflow")
        ? null
        : "Only its creator, admins and owners can delete it.";
  return (
    <tr className="hover:bg-sunken/60">
      <Td>
        <Checkbox
          label={`Select ${row.name}`}
          hideLabel
          checked={ticked}
          onChange={(event) => tick(event.target.checked)}
        />
      </Td>
      <Td className="md:min-w-56">
        <Link to="/workflows/$workflowId" params={{ workflowId: row.id }} className="font-medium hover:underline">
          {row.name}
        </Link>
        {row.kind && <Pill className="ml-2">{row.kind === "nextflow" ? "Nextflow" : "Snakemake"}</Pill>}
        <p className="line-clamp-1 max-w-lg text-[13px] text-muted">
          {row.description || plural(row.nodeCount, "step")}
        </p>
        {row.folder && (
          <Link to="/workflows" search={{ folder: row.folder }} className="text-[13px] text-muted hover:underline">
            {row.folder}
          </Link>
        )}
        <Tags tags={row.tags} />
      </Td>
      <Td className="max-sm:hidden">
        <LastRuns runs={row.lastRuns} />
      </Td>
      <Td className="whitespace-nowrap max-md:hidden">{row.createdBy.name}</Td>
      <Td className="text-muted max-md:hidden">
        <Time at={row.updatedAt} />
      </Td>
      <Td>
        <div className="flex justify-end gap-0.5">
          <Favorite id={row.id} name={row.name} on={favorite} />
          <IconButton
            size="sm"
            label={`Run ${row.name}`}
            icon={<Play className="size-4" aria-hidden />}
            disabledReason={whyNot("start runs") ?? (row.nodeCount === 0 ? "It has no steps yet." : null)}
            onClick={() => void navigate({ to: "/launch", search: { workflow: row.id } })}
          />
          <Menu
            trigger={
              <IconButton
                size="sm"
                label={`More for ${row.name}`}
                icon={<EllipsisVertical className="size-4" aria-hidden />}
              />
            }
          >
            <MenuItem
              icon={<Copy className="size-4" aria-hidden />}
              disabledReason={whyNot("edit workflows")}
              onSelect={() => duplicate.mutate()}
            >
              Duplicate
            </MenuItem>
            <MenuItem
              icon={<Tag className="size-4" aria-hidden />}
              disabledReason={whyNot("edit workflows")}
              onSelect={() => setTagging(true)}
            >
              Tags…
            </MenuItem>
            <MenuItem
              icon={<FolderInput className="size-4" aria-hidden />}
              disabledReason={whyNot("edit workflows")}
              onSelect={move}
            >
              Move to a folder…
            </MenuItem>
            <MenuItem
              icon={<CalendarClock className="size-4" aria-hidden />}
              onSelect={() =>
                void navigate({ to: "/workflows/$workflowId/schedules", params: { workflowId: row.id }, search: {} })
              }
            >
              Schedules and triggers
            </MenuItem>
            <MenuItem icon={<Download className="size-4" aria-hidden />} onSelect={() => download.mutate()}>
              Export as JSON
            </MenuItem>
            <MenuLine />
            <MenuItem
              danger
              icon={<Trash2 className="size-4" aria-hidden />}
              disabledReason={mayDelete}
              onSelect={() => setDeleting(true)}
            >
              Delete
            </MenuItem>
          </Menu>
        </div>
        {tagging && (
          <Suspense fallback={null}>
            <TagsDialog workflow={row} onClose={() => setTagging(false)} onSaved={refresh} />
          </Suspense>
        )}
        <ConfirmDialog
          open={deleting}
          onOpenChange={setDeleting}
          title={`Delete ${row.name}?`}
          action="Delete workflow"
          busy={remove.isPending}
          onConfirm={() => remove.mutate()}
        >
          <p>
            Its versions are deleted, active runs are cancelled, and share links stop working. Finished runs and their
            outputs are kept.
          </p>
        </ConfirmDialog>
      </Td>
    </tr>
  );
}
