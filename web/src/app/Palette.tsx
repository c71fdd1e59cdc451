import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { LayoutTemplate, Moon, Plus, Search, Sun, Upload, UserPlus } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { api, ask, type Schemas } from "../api/client.ts";
import { filesQuery } from "../files/queries.ts";
import { chooseTheme } from "../page/theme.ts";
import { runsQuery } from "../runs/queries.ts";
import { places } from "./rail.ts";

const row =
  "flex items-center gap-2.5 rounded-md px-2.5 py-2 text-sm select-none data-[selected=true]:bg-accent-soft data-[selected=true]:text-accent";
const group =
  "[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:text-muted";

const most = 20; // rows of a kind

const pause = 200; // ms after a letter until the server is asked

/** useSettled is a value once it has not changed for a moment. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pause);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** useFound asks the server for what the words find, once there are some: runs by everything that is known of them, steps, files and papers by name. */
function useFound(words: string) {
  const enabled = words.length > 1;
  const has = (...texts: (string | null | undefined)[]) => texts.join(" ").toLowerCase().includes(words.toLowerCase());
  const filter = { q: words.slice(0, 200) };
  const runs = useQuery({
    ...runsQuery(filter),
    // With the signal, so that the answer to earlier words is no longer waited for.
    queryFn: ({ signal }) => ask(api.GET("/api/runs", { params: { query: filter }, signal })),
    enabled,
    refetchInterval: false,
  });
  const steps = useQuery({
    queryKey: ["steps", filter.q],
    queryFn: ({ signal }) => ask(api.GET("/api/workflows/steps", { params: { query: filter }, signal })),
    enabled,
  });
  const files = useQuery({ ...filesQuery, enabled });
  const papers = useQuery({ queryKey: ["analyses"], queryFn: () => ask(api.GET("/api/ai/analyses")), enabled });
  return {
    runs: enabled ? (runs.isPlaceholderData ? [] : (runs.data ?? [])).slice(0, most) : null,
    steps: enabled ? (steps.data ?? []) : [],
    files: enabled ? (files.data ?? []).filter((file) => has(file.name)).slice(0, most) : [],
    papers: enabled ? (papers.data ?? []).filter((paper) => has(paper.title, paper.doi)).slice(0, most) : [],
  };
}

/** Palette goes anywhere and does anything, by typing. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const workflows = client.getQueryData<Schemas["WorkflowRow"][]>(["workflows"]) ?? [];
  const [typed, setTyped] = useState("");
  const words = useSettled(typed.trim());
  const found = useFound(words);
  const runs = found.runs ?? client.getQueryData<Schemas["RunRow"][]>(["runs", {}]) ?? [];
  const act = (action: () => void) => () => {
    onClose();
    action();
  };
  // The words are in the keys of groups, since a row keeps the keywords that it began with.
  return (
    <Command.Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      label="Search and commands"
      overlayClassName="fixed inset-0 z-40 bg-[rgb(8_14_18/45%)]"
      contentClassName="fixed top-[10vh] left-1/2 z-50 w-[calc(100vw-1.5rem)] max-w-xl -translate-x-1/2 overflow-hidden rounded-xl border bg-raised shadow-lift"
    >
      <div className="flex items-center gap-2 border-b px-3.5">
        <Search className="size-4 text-muted" aria-hidden />
        <Command.Input
          placeholder="Search workflows, steps, runs, files, papers and commands"
          value={typed}
          onValueChange={setTyped}
          className="h-12 flex-1 bg-transparent text-sm outline-none"
        />
      </div>
      <Command.List className="max-h-[50vh] overflow-y-auto p-1.5">
        <Command.Empty className="px-3 py-6 text-center text-sm text-muted">No results</Command.Empty>
        <Command.Group heading="Actions" className={group}>
          <Item icon={<Plus />} onSelect={act(() => void navigate({ to: "/workflows", search: { create: true } }))}>
            New workflow
          </Item>
          <Item icon={<LayoutTemplate />} onSelect={act(() => void navigate({ to: "/templates" }))}>
            Start from a template
          </Item>
          <Item icon={<Upload />} onSelect={act(() => void navigate({ to: "/files" }))}>
            Upload files
          </Item>
          <Item icon={<UserPlus />} onSelect={act(() => void navigate({ to: "/team" }))}>
            Invite someone
          </Item>
          <Item icon={<Moon />} onSelect={act(() => chooseTheme("dark"))}>
            Dark theme
          </Item>
          <Item icon={<Sun />} onSelect={act(() => chooseTheme("light"))}>
            Light theme
          </Item>
        </Command.Group>
        <Command.Group heading="Go to" className={group}>
          {places.map(({ to, label, icon: Icon, key }) => (
            <Item key={to} icon={<Icon />} onSelect={act(() => void navigate({ to }))} hint={`g ${key}`}>
              {label}
            </Item>
          ))}
        </Command.Group>
        {workflows.length > 0 && (
          <Command.Group heading="Workflows" className={group}>
            {workflows.slice(0, 200).map((workflow) => (
              <Command.Item
                key={workflow.id}
                value={`${workflow.name} ${workflow.id}`}
                className={row}
                onSelect={act(
                  () => void navigate({ to: "/workflows/$workflowId", params: { workflowId: workflow.id } }),
                )}
              >
                {workflow.name}
              </Command.Item>
            ))}
          </Command.Group>
        )}
        {runs.length > 0 && (
          <Command.Group key={`runs ${words}`} heading="Runs" className={group}>
            {runs.map((run) => (
              <Command.Item
                key={run.id}
                value={`run ${run.id}`} // without its status: rows that are sorted anew lose the click that is under way
                keywords={[run.workflowName, run.name ?? "", run.status, ...(found.runs ? [typed] : [])]} // the server found it, by whatever
                className={row}
                onSelect={act(() => void navigate({ to: "/runs/$runId", params: { runId: run.id } }))}
              >
                {run.name ?? run.workflowName} <span className="text-muted">· {run.status}</span>
              </Command.Item>
            ))}
          </Command.Group>
        )}
        {found.steps.length > 0 && (
          <Command.Group key={`steps ${words}`} heading="Steps" className={group}>
            {found.steps.map((step) => (
              <Command.Item
                key={`${step.workflowId} ${step.nodeId}`}
                value={`step ${step.workflowId} ${step.nodeId}`}
                keywords={[typed]}
                className={row}
                onSelect={act(
                  () =>
                    void navigate({
                      to: "/workflows/$workflowId",
                      params: { workflowId: step.workflowId },
                      search: { node: step.nodeId },
                    }),
                )}
              >
                {step.name || step.nodeId} <span className="text-muted">· {step.workflowName}</span>
              </Command.Item>
            ))}
          </Command.Group>
        )}
        {found.files.length > 0 && (
          <Command.Group key={`files ${words}`} heading="Files" className={group}>
            {found.files.map((file) => (
              <Command.Item
                key={file.key}
                value={`file ${file.key}`}
                keywords={[typed]}
                className={row}
                onSelect={act(() => void navigate({ to: "/files", search: { q: file.name } }))}
              >
                {file.name}
              </Command.Item>
            ))}
          </Command.Group>
        )}
        {found.papers.length > 0 && (
          <Command.Group key={`papers ${words}`} heading="Papers" className={group}>
            {found.papers.map((paper) => (
              <Command.Item
                key={paper.analysisId}
                value={`paper ${paper.analysisId}`}
                keywords={[typed]}
                className={row}
                onSelect={act(() => void navigate({ to: "/papers", search: { id: paper.analysisId } }))}
              >
                {paper.title ?? paper.doi ?? "A paper"}
              </Command.Item>
            ))}
          </Command.Group>
        )}
      </Command.List>
    </Command.Dialog>
  );
}

function Item({
  icon,
  hint,
  children,
  onSelect,
}: {
  icon: ReactNode;
  hint?: string;
  children: ReactNode;
  onSelect: () => void;
}) {
  return (
    <Command.Item className={row} onSelect={onSelect}>
      <span className="[&>svg]:size-4">{icon}</span>
      {children}
      {hint && <kbd className="ml-auto rounded border px-1 text-[11px] text-muted">{hint}</kbd>}
    </Command.Item>
  );
}
