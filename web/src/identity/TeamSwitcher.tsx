import { useMutation, useQuery } from "@tanstack/react-query";
import { ChevronsUpDown, Plus } from "lucide-react";
import { useState } from "react";
import { ask } from "../api/client.ts";
import { sentence } from "../api/failure.ts";
import { useApi } from "../api/team.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuLine } from "../ui/Menu.tsx";
import { teamsQuery, useEnterTeam, useMe } from "./queries.ts";

export function TeamSwitcher() {
  const me = useMe();
  const teams = useQuery(teamsQuery);
  const enter = useEnterTeam();
  const [creating, setCreating] = useState(false);
  const go = useMutation({ mutationFn: enter });
  return (
    <>
      <Menu
        align="start"
        trigger={
          <Button size="md" className="w-full justify-start! px-2.5!" busy={go.isPending}>
            <span
              className="grid size-6 shrink-0 place-items-center rounded-md bg-accent text-xs font-semibold text-accent-ink"
              aria-hidden
            >
              {me.team.name.slice(0, 1).toUpperCase()}
            </span>
            <span className="sr-only">Team: </span>
            <span className="min-w-0 flex-1 truncate text-left">{me.team.name}</span>
            <ChevronsUpDown className="size-4 shrink-0 text-muted" aria-hidden />
          </Button>
        }
      >
        <MenuLabel>Teams</MenuLabel>
        <MenuChoice
          value={me.team.id}
          onChange={(id) => go.mutate(id)}
          options={(teams.data ?? [me.team]).map((team) => ({
            value: team.id,
            label: (
              <span>
                {team.name} <span className="text-muted">· {team.role}</span>
              </span>
            ),
          }))}
        />
        <MenuLine />
        <MenuItem icon={<Plus className="size-4" aria-hidden />} onSelect={() => setCreating(true)}>
          New team
        </MenuItem>
      </Menu>
      <NewTeamDialog open={creating} onOpenChange={setCreating} />
    </>
  );
}

export function NewTeamDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const [name, setName] = useState("");
  const api = useApi();
  const enter = useEnterTeam();
  const create = useMutation({
    mutationFn: async () => {
      const team = await ask(api.POST("/auth/teams", { body: { name: name.trim() } }));
      await enter(team.id);
    },
    meta: { shown: true },
  });
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title="New team"
      description="A team has its own workflows, runs, files and members. You will be its owner."
    >
      <Form onSubmit={() => create.mutate()}>
        <Field label="Name" error={create.error && sentence(create.error)}>
          <Input value={name} onChange={(event) => setName(event.target.value)} required maxLength={200} autoFocus />
        </Field>
        <Button type="submit" look="primary" busy={create.isPending}>
          Create team
        </Button>
      </Form>
    </Dialog>
  );
}
