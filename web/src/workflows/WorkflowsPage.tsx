import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import {
  FolderInput,
  GitBranch,
  LayoutTemplate,
  Play,
  Plus,
  Search,
  Upload,
  Workflow as WorkflowIcon,
} from "lucide-react";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { useFavorites } from "../page/Favorite.tsx";
import { Page } from "../page/Page.tsx";
import { useChange } from "../page/useChange.ts";
import { Button, buttonClass } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Checkbox, Choice } from "../ui/Field.tsx";
import { plural } from "../ui/format.ts";
import { useFirst, useTicks } from "../ui/rows.tsx";
import { SearchBox } from "../ui/SearchBox.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { Table, Th } from "../ui/Table.tsx";
import type { Moving } from "./FolderDialog.tsx";
import { foldersOf, inFolder, pick, type Sort } from "./model.ts";
import { type WorkflowRow, workflowsQuery } from "./queries.ts";
import { WorkflowTableRow } from "./WorkflowTableRow.tsx";
import { welcomed } from "./welcomed.ts";

const FolderDialog = lazy(() => import("./FolderDialog.tsx"));
const Welcome = lazy(() => import("./Welcome.tsx"));
const CreateDialog = lazy(() => import("./CreateDialog.tsx"));
const ImportDialog = lazy(() => import("./ImportDialog.tsx"));
const FromGitDialog = lazy(() => import("./FromGitDialog.tsx"));

// Beyond this many the rest waits for a click: a thousand rows with their
// bars would be ten thousand elements.
const atOnce = 100;

export function WorkflowsPage() {
  const search = useSearch({ from: "/inside/workflows" });
  const set = useChange<typeof search>();
  const workflows = useQuery(workflowsQuery);
  const whyNot = useWhyNot();
  const sort: Sort = search.sort ?? "updated";
  return (
    <Page
      title="Workflows"
      actions={
        <>
          <Button
            icon={<Upload className="size-4" aria-hidden />}
            disabledReason={whyNot("edit workflows")}
            onClick={() => set({ import: true })}
          >
            Import
          </Button>
          <Button
            icon={<GitBranch className="size-4" aria-hidden />}
            disabledReason={whyNot("edit workflows")}
            onClick={() => set({ git: true })}
          >
            From Git
          </Button>
          <Link to="/templates" className={buttonClass("secondary")}>
            <LayoutTemplate className="size-4" aria-hidden /> Templates
          </Link>
          <Button
            look="primary"
            icon={<Plus className="size-4" aria-hidden />}
            disabledReason={whyNot("edit workflows")}
            onClick={() => set({ create: true })}
          >
            New workflow
          </Button>
        </>
      }
    >
      <Answer query={workflows} rows={8}>
        {(rows) =>
          rows.length === 0 ? (
            <FirstSteps rows={rows}>
              <FirstWorkflow create={() => set({ create: true })} whyNot={whyNot("edit workflows")} />
            </FirstSteps>
          ) : (
            <>
              <FirstSteps rows={rows} />
              <div className="mb-4 flex flex-wrap gap-2">
                <SearchBox
                  label="Search workflows"
                  placeholder="Name, description, tag, folder or person"
                  className="min-w-56 flex-1"
                  value={search.q ?? ""}
                  onChange={(words) => set({ q: words || undefined })}
                />
                <Choice
                  aria-label="Sort by"
                  className="sm:w-auto!"
                  options={{ updated: "Last edited", created: "Newest", name: "Name" }}
                  value={sort}
                  onChange={(next) => set({ sort: next })}
                />
              </div>
              <WorkflowsInFolders
                rows={rows}
                words={search.q ?? ""}
                sort={sort}
                folder={search.folder ?? ""}
                favorites={search.favorites ?? false}
                set={set}
              />
            </>
          )
        }
      </Answer>
      <Suspense fallback={null}>
        {search.create && <CreateDialog open onOpenChange={() => set({ create: undefined })} />}
        {search.import && <ImportDialog open onOpenChange={() => set({ import: undefined })} />}
        {search.git && <FromGitDialog open onOpenChange={() => set({ git: undefined })} />}
      </Suspense>
    </Page>
  );
}

/** FirstSteps are for a team that has not done much yet; whoever is past them sees the children. */
function FirstSteps({ rows, children }: { rows: WorkflowRow[]; children?: ReactNode }) {
  const [wanted, setWanted] = useState(() => !welcomed());
  if (!wanted || rows.length > 2) return children;
  return (
    <Suspense fallback={<Skeleton className="mb-6 h-60" />}>
      <Welcome rows={rows} onLeave={() => setWanted(false)} />
    </Suspense>
  );
}

function FirstWorkflow({ create, whyNot }: { create: () => void; whyNot: string | null }) {
  return (
    <Empty
      icon={<WorkflowIcon />}
      title="Start from a template"
      actions={
        <>
          <Link to="/templates" className={buttonClass("primary")}>
            <Play className="size-4" aria-hidden /> Run a template
          </Link>
          <Button icon={<Plus className="size-4" aria-hidden />} disabledReason={whyNot} onClick={create}>
            Empty workflow
          </Button>
        </>
      }
    >
      A workflow is a graph of steps: each runs a command and passes files to the next. Run a template in under a
      minute, then adapt it.
    </Empty>
  );
}

interface InFolders {
  rows: WorkflowRow[];
  words: string;
  sort: Sort;
  folder: string;
  favorites: boolean;
  set: (change: { q?: string | undefined; folder?: string | undefined; favorites?: true | undefined }) => void;
}

/** WorkflowsInFolders is those of a folder, favorites first, and moves them. */
function WorkflowsInFolders({ rows, words, sort, folder, favorites, set }: InFolders) {
  const marked = useFavorites();
  const whyNot = useWhyNot();
  const { ticked, tick, clear } = useTicks();
  const [moving, setMoving] = useState<Moving | null>(null);
  const folders = foldersOf(rows);
  const names: Record<string, string> = { "": "All folders" };
  for (const each of folders) names[each] = each;
  const inside = rows.filter((row) => inFolder(row.folder, folder) && (!favorites || marked.has(row.id)));
  return (
    <>
      <div className="mb-3 flex min-h-9 flex-wrap items-center gap-x-4 gap-y-2">
        {folders.length > 0 && (
          <Choice
            aria-label="Folder"
            className="sm:w-auto!"
            options={folder && !names[folder] ? { ...names, [folder]: folder } : names}
            value={folder}
            onChange={(next) => set({ folder: next || undefined })}
          />
        )}
        {folder && (
          <Button size="sm" disabledReason={whyNot("edit workflows")} onClick={() => setMoving({ folder })}>
            Rename folder
          </Button>
        )}
        <Checkbox
          label="Only favorites"
          checked={favorites}
          onChange={(event) => set({ favorites: event.target.checked || undefined })}
        />
        {ticked.size > 0 && (
          <Button
            size="sm"
            icon={<FolderInput className="size-4" aria-hidden />}
            disabledReason={whyNot("edit workflows")}
            onClick={() => setMoving({ workflows: rows.filter((row) => ticked.has(row.id)) })}
          >
            Move {plural(ticked.size, "workflow")}
          </Button>
        )}
      </div>
      <WorkflowsTable
        rows={pick(inside, words, sort, marked)}
        favorites={marked}
        ticked={ticked}
        tick={tick}
        move={(row) => setMoving({ workflows: [row] })}
        clear={() => set({ q: undefined, folder: undefined, favorites: undefined })}
      />
      {moving && (
        <Suspense fallback={null}>
          <FolderDialog
            moving={moving}
            folders={folders}
            onClose={() => {
              setMoving(null);
              clear();
            }}
            onMoved={(to) => set({ folder: to || undefined })}
          />
        </Suspense>
      )}
    </>
  );
}

interface TableProps {
  rows: WorkflowRow[];
  favorites: Set<string>;
  ticked: ReadonlySet<string>;
  tick: (ids: string[], on: boolean) => void;
  move: (row: WorkflowRow) => void;
  clear: () => void;
}

function WorkflowsTable({ rows, favorites, ticked, tick, move, clear }: TableProps) {
  const { shown, more } = useFirst(rows, atOnce);
  if (rows.length === 0) {
    return (
      <Empty icon={<Search />} title="No results" actions={<Button onClick={clear}>Show all</Button>}>
        Names, descriptions, tags, folders and people are searched.
      </Empty>
    );
  }
  return (
    <>
      <Table
        label="Workflows"
        head={
          <>
            <Th className="w-8">
              <span className="sr-only">Select</span>
            </Th>
            <Th>Name</Th>
            <Th className="max-sm:hidden">Last runs</Th>
            <Th className="max-md:hidden">Created by</Th>
            <Th className="max-md:hidden">Edited</Th>
            <Th className="w-24">
              <span className="sr-only">Actions</span>
            </Th>
          </>
        }
      >
        {shown.map((row) => (
          <WorkflowTableRow
            key={row.id}
            row={row}
            favorite={favorites.has(row.id)}
            ticked={ticked.has(row.id)}
            tick={(on) => tick([row.id], on)}
            move={() => move(row)}
          />
        ))}
      </Table>
      <div className="mt-3 flex items-center justify-between text-sm text-muted">
        <p role="status">{plural(rows.length, "workflow")}</p>
        {more}
      </div>
    </>
  );
}
