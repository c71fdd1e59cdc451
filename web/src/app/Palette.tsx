import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { LayoutTemplate, Moon, Plus, Search, Sun, Upload, UserPlus } from "lucide-react";
import { type ReactNode, useState } from "react";
import { type Api, ask } from "../api/client.ts";
import { apiOf } from "../api/team.ts";
import { useMissing } from "../identity/queries.ts";
import { useSingleKeys } from "../page/singleKeys.ts";
import { looks } from "../page/status.tsx";
import { chooseTheme } from "../page/theme.ts";
import { shortAgo } from "../ui/format.ts";
import { useSettled } from "../ui/useSettled.ts";
import { places } from "./rail.ts";

const row =
  "flex items-center gap-2.5 rounded-md px-2.5 py-2 text-sm select-none data-[selected=true]:bg-accent-soft data-[selected=true]:text-accent";
const group =
  "[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:text-muted";

const most = 20; // rows of a kind
const recent = 10; // of those that are there before anybody has typed

const pause = 200; // ms after a letter until the server is asked

/** useAsked is what the server has of a kind, and the words that found it. Until it has answered, that is what earlier words found. */
function useAsked<T>(
  kind: string,
  words: string,
  enabled: boolean,
  ask: (api: Api, signal: AbortSignal) => Promise<T[]>,
) {
  const queryKey = [kind, "palette", words];
  const { data, isFetching } = useQuery({
    queryKey,
    queryFn: async ({ client, signal }) => ({ words, rows: await ask(apiOf(client), signal) }),
    placeholderData: keepPreviousData,
    enabled,
  });
  return { rows: (enabled && data?.rows) || [], words: data?.words ?? words, asking: enabled && isFetching };
}

/** useFound asks the server for what the words find: runs by everything that is known of them, the others by name. Without words it is the newest workflows and runs. */
function useFound(words: string) {
  const some = words.length > 1;
  const q = some ? words.slice(0, 200) : "";
  const query = some ? { q, limit: most } : { limit: recent };
  const has = (...texts: (string | null | undefined)[]) => texts.join(" ").toLowerCase().includes(words.toLowerCase());
  const workflows = useAsked("workflows", q, true, (api, signal) =>
    ask(api.GET("/api/workflows", { params: { query }, signal })),
  );
  const runs = useAsked("runs", q, true, (api, signal) => ask(api.GET("/api/runs", { params: { query }, signal })));
  const steps = useAsked("steps", q, some, (api, signal) =>
    ask(api.GET("/api/workflows/steps", { params: { query: { q } }, signal })),
  );
  const files = useAsked("files", q, some, (api, signal) => ask(api.GET("/api/files", { params: { query }, signal })));
  const all = useAsked("analyses", "", some, (api, signal) => ask(api.GET("/api/ai/analyses", { signal })));
  const papers = { words, rows: all.rows.filter((paper) => has(paper.title, paper.doi)).slice(0, most) };
  const asking = [workflows, runs, steps, files, all].some((each) => each.asking);
  return { workflows, runs, steps, files, papers, asking };
}

/** Palette goes anywhere and does anything, by typing. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const free = useMissing("billing");
  const navigate = useNavigate();
  const [typed, setTyped] = useState("");
  const words = useSettled(typed.trim(), pause);
  const found = useFound(words);
  const singleKeys = useSingleKeys();
  const keywords = words.length > 1 ? [typed] : []; // the server found it, by whatever
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
          placeholder="Search workflows, runs, files and commands"
          value={typed}
          onValueChange={setTyped}
          className="h-12 flex-1 bg-transparent text-sm outline-none"
        />
      </div>
      {/* Beside the list: a listbox has nothing but options in it. */}
      <Command.Empty className="px-3 pt-6 pb-4 text-center text-sm text-muted">
        {found.asking || typed.trim() !== words ? "Searching…" : "No results"}
      </Command.Empty>
      <Command.List className="max-h-[50vh] overflow-y-auto p-1.5">
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
            <Item
              key={to}
              icon={<Icon />}
              onSelect={act(() => void navigate({ to }))}
              {...(singleKeys && { hint: `g ${key}` })}
            >
              {to === "/billing" && free ? "Quotas" : label}
            </Item>
          ))}
        </Command.Group>
        {found.workflows.rows.length > 0 && (
          <Command.Group key={`workflows ${found.workflows.words}`} heading="Workflows" className={group}>
            {found.workflows.rows.map((workflow) => (
              <Command.Item
                key={workflow.id}
                value={`workflow ${workflow.id}`}
                keywords={[workflow.name, ...keywords]}
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
        {found.runs.rows.length > 0 && (
          <Command.Group key={`runs ${found.runs.words}`} heading="Runs" className={group}>
            {found.runs.rows.map((run) => (
              <Command.Item
                key={run.id}
                value={`run ${run.id}`} // without its status: rows that are sorted anew lose the click that is under way
                keywords={[run.workflowName, run.name ?? "", run.status, ...keywords]}
                className={row}
                onSelect={act(() => void navigate({ to: "/runs/$runId", params: { runId: run.id } }))}
              >
                <span className="min-w-0 truncate">{run.name ?? run.workflowName}</span>
                <span className="whitespace-nowrap text-muted">
                  {run.name && `${run.workflowName} `}#{run.number} · {looks[run.status].word.toLowerCase()} ·{" "}
                  {shortAgo(run.createdAt)}
                </span>
              </Command.Item>
            ))}
          </Command.Group>
        )}
        {found.steps.rows.length > 0 && (
          <Command.Group key={`steps ${found.steps.words}`} heading="Steps" className={group}>
            {found.steps.rows.map((step) => (
              <Command.Item
                key={`${step.workflowId} ${step.nodeId}`}
                value={`step ${step.workflowId} ${step.nodeId}`}
                keywords={keywords}
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
        {found.files.rows.length > 0 && (
          <Command.Group key={`files ${found.files.words}`} heading="Files" className={group}>
            {found.files.rows.map((file) => (
              <Command.Item
                key={file.key}
                value={`file ${file.key}`}
                keywords={keywords}
                className={row}
                onSelect={act(() => void navigate({ to: "/files", search: { q: file.name } }))}
              >
                {file.name}
              </Command.Item>
            ))}
          </Command.Group>
        )}
        {found.papers.rows.length > 0 && (
          <Command.Group key={`papers ${found.papers.words}`} heading="Papers" className={group}>
            {found.papers.rows.map((paper) => (
              <Command.Item
                key={paper.analysisId}
                value={`paper ${paper.analysisId}`}
                keywords={keywords}
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
