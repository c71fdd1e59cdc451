import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { ChevronRight, Share2 } from "lucide-react";
import { lazy, Suspense, useEffect, useState } from "react";
import { useStore } from "zustand";
import { ask } from "../api/client.ts";
import { failureOf } from "../api/failure.ts";
import { useApi } from "../api/team.ts";
import { useMe, useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { useTitle } from "../page/Page.tsx";
import { useChange } from "../page/useChange.ts";
import { Button, buttonClass } from "../ui/Button.tsx";
import { type Workflow, workflowQuery } from "../workflows/queries.ts";
import { Editor, Ended, type Panel } from "./Editor.tsx";
import { DraftInput } from "./fields.tsx";
import { People } from "./People.tsx";
import { cannotRun, RunButton } from "./RunButton.tsx";
import { SaveTrouble } from "./SaveState.tsx";
import { SuggestedEdit } from "./SuggestedEdit.tsx";
import { Session } from "./session.ts";
import { LeftEdits, LostEdits } from "./UnsavedEdits.tsx";
import { untilLoaded } from "./untilLoaded.ts";

const RunDialog = lazy(async () => ({
  default: (await untilLoaded(() => import("../runs/start/RunDialog.tsx"))).RunDialog,
}));
const RunFromHere = lazy(async () => ({
  default: (await untilLoaded(() => import("../runs/page/Retry.tsx"))).RunFromHere,
}));
const ShareDialog = lazy(async () => ({
  default: (await untilLoaded(() => import("../sharing/ShareDialog.tsx"))).ShareDialog,
}));

const FollowsGit = lazy(() => untilLoaded(() => import("./FollowsGit.tsx")));

const panels: Panel[] = ["step", "workflow", "problems", "history", "source"];

/** EditorPage edits one workflow. It takes the whole width and height beside the rail. */
export function EditorPage() {
  const { workflowId } = useParams({ from: "/inside/workflows/$workflowId" });
  const workflow = useQuery(workflowQuery(workflowId));
  const lost = workflow.isError && !workflow.data;
  return (
    <div className={lost ? "mx-auto mt-6 w-full max-w-xl space-y-4 px-4" : "contents"}>
      {lost && <LostEdits workflow={{ id: workflowId, name: workflowId }} />}
      <Answer query={workflow} id={workflowId} loading={<div className="flex-1" />}>
        {(found) => <Open key={workflowId} workflow={found} />}
      </Answer>
    </div>
  );
}

/** useOpen opens a session that lasts as long as the page. */
function useOpen(workflowId: string, follows: boolean): Session | null {
  const api = useApi();
  const me = useMe();
  const mayEdit = useWhyNot()("edit workflows") === null && !follows;
  const [session, setSession] = useState<Session | null>(null);
  const { name, id } = me;
  useEffect(() => {
    const path = { id: workflowId };
    const made = new Session({
      mayEdit,
      user: { name },
      place: `${id} ${workflowId}`,
      pass: () => ask(api.POST("/api/collab/token", { body: { workflowId } })),
      load: async () => {
        const { data, error, response } = await api.GET("/api/workflows/{id}", { params: { path } });
        if (!data) throw failureOf(response, error);
        return { definition: data.data.definition, tag: response.headers.get("ETag") };
      },
      save: async (definition, tag) => {
        const { data, error, response } = await api.PUT("/api/workflows/{id}", {
          params: { path, header: { ...(tag && { "If-Match": tag }) } },
          body: { definition },
        });
        if (!data) throw failureOf(response, error);
        return response.headers.get("ETag");
      },
    });
    setSession(made);
    const leaving = (event: BeforeUnloadEvent) => {
      if (made.lossy()) event.preventDefault();
    };
    addEventListener("beforeunload", leaving);
    return () => {
      removeEventListener("beforeunload", leaving);
      made.destroy();
    };
  }, [api, workflowId, mayEdit, name, id]);
  return session;
}

/** useWaysOut loads the pages that people leave the editor for: the server may be away by then. */
function useWaysOut(): void {
  useEffect(() => {
    void Promise.allSettled([import("../runs/list/RunsPage.tsx"), import("../workflows/WorkflowsPage.tsx")]);
  }, []);
}

function Open({ workflow }: { workflow: Workflow }) {
  const session = useOpen(workflow.id, workflow.git !== undefined);
  const search = useSearch({ from: "/inside/workflows/$workflowId" });
  const set = useChange<typeof search>();
  useTitle(workflow.name);
  useWaysOut();
  if (!session) return null;
  return (
    <Living
      session={session}
      workflow={workflow}
      search={search}
      set={set}
      panel={panels.find((each) => each === search.panel) ?? null}
    />
  );
}

type Search = { node?: string; panel?: string; from?: string; run?: true; share?: true };

function Living(props: {
  session: Session;
  workflow: Workflow;
  search: Search;
  set: (change: { [K in keyof Search]?: Search[K] | undefined }) => void;
  panel: Panel | null;
}) {
  const { session, workflow, search, set, panel } = props;
  const ending = useStore(session.state, (state) => state.ending);
  const notAllowed = useWhyNot()("start runs");
  if (ending) {
    return (
      <Ended title={ending === "deleted" ? "This workflow was deleted" : "The editor was closed"}>
        <p className="mb-3">
          {ending === "deleted" && "Its runs are still listed."}
          {ending === "revoked" && "You no longer have access. Ask a team admin."}
          {ending === "too-large" && "The workflow is too large to edit together. Reload the page."}
          {ending === "storage-full" &&
            "The team's storage is full. Delete files, runs or workflows, or change to a larger plan."}
          {ending === "broken" && "Something unexpected happened. Reload the page; saved changes are kept."}
        </p>
        <Link to="/workflows" className={buttonClass("secondary", "sm")}>
          Go to workflows
        </Link>
        <LostEdits workflow={workflow} />
      </Ended>
    );
  }
  return (
    <Editor
      session={session}
      workflowId={workflow.id}
      name={workflow.name}
      title={<Title workflow={workflow} />}
      view={{ node: search.node ?? null, panel }}
      onView={(change) =>
        set({
          ...("node" in change && { node: change.node ?? undefined }),
          ...("panel" in change && { panel: change.panel ?? undefined }),
        })
      }
      banner={
        <>
          <SaveTrouble />
          <LeftEdits name={workflow.name} />
          <SuggestedEdit />
          <Suspense fallback={null}>{workflow.git && <FollowsGit workflow={workflow} git={workflow.git} />}</Suspense>
        </>
      }
      actions={
        <>
          <People />
          <ShareButton onClick={() => set({ share: true })} />
          {search.from && (
            <Suspense fallback={null}>
              <RunFromHere runId={search.from} flush={() => session.flush().catch(cannotRun)} />
            </Suspense>
          )}
          <RunButton notAllowed={notAllowed} onRun={() => set({ run: true })} />
          <Suspense fallback={null}>
            {search.run && (
              <RunDialog workflowId={workflow.id} open onOpenChange={(open) => set({ run: open || undefined })} />
            )}
            {search.share && (
              <ShareDialog
                workflowId={workflow.id}
                workflowName={workflow.name}
                open
                onOpenChange={(open) => set({ share: open || undefined })}
              />
            )}
          </Suspense>
        </>
      }
    />
  );
}

function Title({ workflow }: { workflow: Workflow }) {
  const api = useApi();
  const client = useQueryClient();
  const locked = useWhyNot()("edit workflows") !== null;
  const rename = useMutation({
    mutationFn: (name: string) =>
      ask(api.PUT("/api/workflows/{id}", { params: { path: { id: workflow.id } }, body: { name } })),
    onSuccess: (fresh) => {
      client.setQueryData(workflowQuery(workflow.id).queryKey, fresh);
      void client.invalidateQueries({ queryKey: ["workflows"] });
    },
  });
  return (
    <h1 className="flex min-w-0 items-center gap-1 text-base!">
      <Link to="/workflows" className="shrink-0 text-sm font-normal text-muted hover:underline max-sm:hidden">
        Workflows
      </Link>
      <ChevronRight className="size-4 shrink-0 text-muted max-sm:hidden" aria-hidden />
      <span className="sr-only">{workflow.name}</span>
      <DraftInput
        aria-label="Workflow name"
        className="h-8! min-w-0 text-ellipsis border-transparent! bg-transparent! px-1.5! text-base! font-semibold hover:border-line!"
        size={Math.min(48, Math.max(10, workflow.name.length))}
        maxLength={200}
        disabled={locked}
        value={workflow.name}
        refuse={(name) => (name.trim() ? null : "Enter a name.")}
        onKeep={(name) => rename.mutate(name.trim())}
      />
    </h1>
  );
}

function ShareButton({ onClick }: { onClick: () => void }) {
  return (
    <Button
      size="sm"
      icon={<Share2 className="size-4" aria-hidden />}
      disabledReason={useWhyNot()("manage sharing")}
      onClick={onClick}
    >
      <span className="max-sm:sr-only">Share</span>
    </Button>
  );
}
