import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Bookmark, X } from "lucide-react";
import { useState } from "react";
import { ask, type Schemas } from "../../api/client.ts";
import { useApi } from "../../api/team.ts";
import { Problem } from "../../page/Problem.tsx";
import { Button, IconButton } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field, Input } from "../../ui/Field.tsx";
import { Form } from "../../ui/Form.tsx";
import { toast } from "../../ui/toast.ts";
import { filtersQuery } from "../queries.ts";

export type KeptFilter = Schemas["RunFilter"];

interface Props {
  /** What the page shows now; null where that is everything. */
  current: KeptFilter | null;
  onChoose: (filter: KeptFilter) => void;
}

/** SavedFilters lists the saved filters and saves the current one. */
export function SavedFilters({ current, onChoose }: Props) {
  const api = useApi();
  const [naming, setNaming] = useState(false);
  const client = useQueryClient();
  const filters = useQuery(filtersQuery);
  const drop = useMutation({
    mutationFn: (id: string) => ask(api.DELETE("/api/me/filters/{id}", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: filtersQuery.queryKey }),
  });
  const list = filters.data ?? [];
  if (list.length === 0 && !current) return null;
  return (
    <>
      {list.map(({ id, name, filter }) => (
        <span key={id} className="inline-flex max-w-full items-center rounded-lg border">
          <Button size="sm" look="quiet" className="min-w-0" onClick={() => onChoose(filter)}>
            <span className="max-w-48 truncate">{name}</span>
          </Button>
          <IconButton
            label={`Delete the filter ${name}`}
            icon={<X className="size-3.5" aria-hidden />}
            onClick={() => drop.mutate(id)}
          />
        </span>
      ))}
      {current && (
        <Button
          size="sm"
          look="quiet"
          icon={<Bookmark className="size-4" aria-hidden />}
          onClick={() => setNaming(true)}
        >
          Save this filter
        </Button>
      )}
      {naming && current && <NameDialog filter={current} onClose={() => setNaming(false)} />}
    </>
  );
}

function NameDialog({ filter, onClose }: { filter: KeptFilter; onClose: () => void }) {
  const api = useApi();
  const [name, setName] = useState("");
  const client = useQueryClient();
  const keep = useMutation({
    mutationFn: () => ask(api.POST("/api/me/filters", { body: { name, filter } })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: filtersQuery.queryKey });
      toast.ok("Saved");
      onClose();
    },
    meta: { shown: true },
  });
  return (
    <Dialog open onOpenChange={onClose} title="Save this filter">
      <Form onSubmit={() => keep.mutate()}>
        <Field label="Name" hint="Only you see it. Replaces a filter of the same name.">
          <Input autoFocus maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
        </Field>
        {keep.error && <Problem error={keep.error} />}
        <footer className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          <Button
            type="submit"
            look="primary"
            busy={keep.isPending}
            disabledReason={name.trim() ? null : "Type a name first."}
          >
            Save
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}
