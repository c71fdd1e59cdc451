import { ReactFlowProvider, useReactFlow } from "@xyflow/react";
import {
  lazy,
  type ReactNode,
  Suspense,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { useStore } from "zustand";
import { classes } from "../ui/classes.ts";
import { Notice } from "../ui/Notice.tsx";
import { Skeleton, useLate } from "../ui/Skeleton.tsx";
import { TabPanel, Tabs } from "../ui/Tabs.tsx";
import { Canvas } from "./Canvas.tsx";
import { Editing, useChosen, useEditor, useGraph, useSession, useShown } from "./context.ts";
import { HistoryPanel } from "./HistoryPanel.tsx";
import { Inspector } from "./Inspector.tsx";
import { Palette } from "./Palette.tsx";
import { ProblemsPanel } from "./ProblemsPanel.tsx";
import { newProblems, watchProblems } from "./problems.ts";
import { SaveState } from "./SaveState.tsx";
import type { Session } from "./session.ts";
import { Toolbar } from "./Toolbar.tsx";
import { useNode } from "./useRoot.ts";
import { WorkflowPanel } from "./WorkflowPanel.tsx";

const SourcePanel = lazy(() => import("./SourcePanel.tsx"));
const Find = lazy(async () => ({ default: (await import("./Insert.tsx")).Find }));

/** fetchAhead has the parts of the editor at hand that are shown later: the server may be away by then. */
const fetchAhead = () =>
  void Promise.allSettled([import("./CommandEditor.tsx"), import("./SourcePanel.tsx"), import("./Insert.tsx")]);

export type Panel = "step" | "workflow" | "problems" | "history" | "source";

export interface View {
  node: string | null;
  panel: Panel | null;
}

interface EditorProps {
  session: Session;
  name: string;
  /** The name as a heading, perhaps one that can be changed. */
  title: ReactNode;
  actions: ReactNode;
  banner?: ReactNode;
  view: View;
  onView: (change: Partial<View>) => void;
  /** Without a workflow id, what members alone may ask is left out. */
  workflowId: string | null;
}

/** Editor is the frame around the canvas: the bar, the panel beside it, and what everybody in it shares. */
export function Editor(props: EditorProps) {
  return (
    <ReactFlowProvider>
      <Inner {...props} />
    </ReactFlowProvider>
  );
}

const narrow = matchMedia("(max-width: 767px)");

function useNarrow(): boolean {
  return useSyncExternalStore(
    (changed) => {
      narrow.addEventListener("change", changed);
      return () => narrow.removeEventListener("change", changed);
    },
    () => narrow.matches,
  );
}

function Inner({ session, name, title, actions, banner, view, onView, workflowId }: EditorProps) {
  const flow = useReactFlow();
  const graph = useStore(session.state, (state) => state.graph);
  const ready = useStore(session.state, (state) => state.ready);
  useEffect(() => {
    if (ready) fetchAhead();
  }, [ready]);
  const problems = useMemo(newProblems, []);
  const small = useNarrow();
  const lock = small ? "View only on small screens." : null;
  useEffect(() => {
    graph.document.editable = session.state.getState().canEdit && lock === null;
  });
  useEffect(() => {
    if (ready && workflowId) return watchProblems(graph.document, problems);
  }, [ready, workflowId, graph, problems]);
  // A guest may not ask, but is told.
  const told = useStore(session.state, (state) => state.problems);
  useEffect(() => {
    if (told && !workflowId) problems.setState({ list: told.map((each) => ({ ...each, node: null })) });
  }, [told, workflowId, problems]);
  const show = useCallback(
    (id: string) => {
      graph.select([id]);
      void flow.fitView({ nodes: [{ id }], maxZoom: 1, padding: 0.6, duration: 300 });
    },
    [graph, flow],
  );
  const context = useMemo(() => ({ session, problems, lock, show }), [session, problems, lock, show]);
  return (
    <Editing value={context}>
      <div className="flex h-[calc(100dvh-3.25rem)] min-h-0 flex-col md:h-dvh">
        {banner}
        <header className="flex flex-wrap items-center gap-x-3 gap-y-1.5 border-b bg-surface px-3 py-2 md:px-4">
          <div className="flex min-w-0 flex-1 items-center gap-3">
            {title}
            <SaveState />
          </div>
          <div className="flex items-center gap-2">{actions}</div>
        </header>
        {!ready ? (
          <Opening />
        ) : (
          <Workspace view={view} onView={onView} name={name} workflowId={workflowId} small={small} />
        )}
      </div>
    </Editing>
  );
}

function Opening() {
  const late = useLate();
  return (
    <div role="status" aria-label="Loading workflow" className="flex-1 p-4">
      {late && <Skeleton className="h-full" />}
    </div>
  );
}

interface WorkspaceProps extends Pick<EditorProps, "view" | "onView" | "name" | "workflowId"> {
  small: boolean;
}

function Workspace({ view, onView, name, workflowId, small }: WorkspaceProps) {
  const graph = useGraph();
  const { lock, show } = useEditor();
  const chosen = useChosen();
  const empty = useShown().nodes.length === 0;
  const mayEdit = useSession((state) => state.canEdit);
  const canEdit = mayEdit && lock === null;
  const [palette, setPalette] = useState(empty && canEdit);
  const [finding, setFinding] = useState(false);
  const [open, setOpen] = useState(!small);
  const was = useRef(small);
  useEffect(() => {
    if (was.current === small) return;
    was.current = small;
    setOpen(!small);
  }, [small]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when another step is chosen
  useEffect(() => {
    if (chosen !== view.node) onView({ node: chosen, ...(chosen && view.panel !== "step" && { panel: "step" }) });
  }, [chosen]);
  return (
    <div className="relative flex min-h-0 flex-1">
      <div className="flex min-h-0 min-w-0 flex-1 flex-col">
        {lock && mayEdit && <p className="border-b bg-info-soft px-3 py-1 text-center text-[13px]">{lock}</p>}
        <div className="relative flex min-h-0 flex-1 flex-col">
          <Toolbar
            canEdit={canEdit}
            onAdd={() => setPalette(!palette)}
            onFind={() => setFinding(true)}
            onPanel={() => setOpen(!open)}
            open={open}
          />
          {palette && canEdit && <Palette onClose={() => setPalette(false)} />}
          <Canvas
            onFind={() => setFinding(true)}
            // The address names the chosen step, and leads to it.
            onOpen={() => {
              if (view.node && graph.document.roots.nodes.has(view.node)) show(view.node);
            }}
          />
        </div>
      </div>
      {open && (
        <aside
          aria-label="Details"
          className={classes(
            "flex min-h-0 flex-col border-l bg-surface",
            small ? "absolute inset-y-0 right-0 z-20 w-[min(24rem,92vw)] shadow-lift" : "w-96 shrink-0",
          )}
        >
          <Side view={view} onView={onView} name={name} workflowId={workflowId} chosen={chosen} />
        </aside>
      )}
      {finding && (
        <Suspense fallback={null}>
          <Find onClose={() => setFinding(false)} />
        </Suspense>
      )}
    </div>
  );
}

function Side({
  view,
  onView,
  name,
  workflowId,
  chosen,
}: Pick<EditorProps, "view" | "onView" | "name" | "workflowId"> & { chosen: string | null }) {
  const { problems } = useEditor();
  const node = useNode(chosen);
  const count = useStore(problems, (state) => state.list?.length ?? 0);
  const panel: Panel = view.panel === "step" || !view.panel ? (node ? "step" : (view.panel ?? "workflow")) : view.panel;
  const tabs: { value: Panel; label: ReactNode }[] = [
    { value: "step", label: "Step" },
    { value: "workflow", label: "Workflow" },
    { value: "problems", label: count > 0 ? `Problems ${count}` : "Problems" },
    ...(workflowId ? [{ value: "history" as const, label: "History" }] : []),
    { value: "source", label: "Code" },
  ];
  return (
    <Tabs
      label="Details"
      value={panel}
      onChange={(next) => onView({ panel: next })}
      tabs={tabs}
      className="flex min-h-0 flex-1 flex-col [&>[role=tablist]]:px-2 [&>[role=tablist]>button]:px-2"
    >
      <div className="min-h-0 flex-1 overflow-y-auto p-4">
        <TabPanel value="step">
          {node ? (
            <Inspector key={node.id} node={node} workflowId={workflowId} />
          ) : (
            <p className="text-sm text-muted">Select a step on the canvas.</p>
          )}
        </TabPanel>
        <TabPanel value="workflow">
          <WorkflowPanel guest={workflowId === null} />
        </TabPanel>
        <TabPanel value="problems">
          <ProblemsPanel />
        </TabPanel>
        {workflowId && (
          <TabPanel value="history">
            <HistoryPanel workflowId={workflowId} />
          </TabPanel>
        )}
        <TabPanel value="source" className="h-full">
          <Suspense fallback={<Skeleton className="h-64" />}>
            <SourcePanel name={name} asks={workflowId !== null} />
          </Suspense>
        </TabPanel>
      </div>
    </Tabs>
  );
}

/** Ended is what remains when one may not go on. */
export function Ended({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="mx-auto w-full max-w-xl px-4 py-16">
      <Notice tone="info" title={title}>
        {children}
      </Notice>
    </div>
  );
}
