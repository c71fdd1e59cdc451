import { ReactFlowProvider } from "@xyflow/react";
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
import { useApi } from "../api/team.ts";
import type { Finding } from "../definition/problems.ts";
import { classes } from "../ui/classes.ts";
import { Notice } from "../ui/Notice.tsx";
import { Skeleton, useLate } from "../ui/Skeleton.tsx";
import { TabPanel, Tabs } from "../ui/Tabs.tsx";
import { newActions, type Target } from "./actions/actions.ts";
import { useActionKeys } from "./actions/useActionKeys.ts";
import { Canvas } from "./Canvas.tsx";
import {
  Editing,
  newSoughtField,
  useCanEdit,
  useChosen,
  useEditor,
  useGraph,
  useSession,
  useShown,
  Working,
} from "./context.ts";
import { HistoryPanel } from "./HistoryPanel.tsx";
import type { InsertAt } from "./Insert.tsx";
import { Inspector } from "./Inspector.tsx";
import { Palette } from "./Palette.tsx";
import { ProblemsPanel } from "./ProblemsPanel.tsx";
import { newProblems, pollProblems, showFindings } from "./problems.ts";
import { SaveState } from "./SaveState.tsx";
import type { Session } from "./session.ts";
import { Toolbar } from "./Toolbar.tsx";
import { untilLoaded } from "./untilLoaded.ts";
import { useCanvasView, useFocusOnceDrawn } from "./useCanvasView.ts";
import { useNode } from "./useDocument.ts";
import { WorkflowPanel } from "./WorkflowPanel.tsx";

const SourcePanel = lazy(() => untilLoaded(() => import("./SourcePanel.tsx")));
const Find = lazy(async () => ({ default: (await untilLoaded(() => import("./Insert.tsx"))).Find }));
const Insert = lazy(async () => ({ default: (await untilLoaded(() => import("./Insert.tsx"))).Insert }));
const LeftoverDialog = lazy(async () => ({
  default: (await untilLoaded(() => import("./LeftoverDialog.tsx"))).LeftoverDialog,
}));
const ShortcutsDialog = lazy(async () => ({
  default: (await untilLoaded(() => import("./actions/ShortcutsDialog.tsx"))).ShortcutsDialog,
}));

/** fetchAhead loads the parts of the editor that are shown later: the server may be away by then. */
const fetchAhead = () =>
  void Promise.allSettled([
    import("./CommandEditor.tsx"),
    import("./SourcePanel.tsx"),
    import("./Insert.tsx"),
    import("./LeftoverDialog.tsx"),
    import("./actions/ShortcutsDialog.tsx"),
  ]);

export type Panel = "step" | "workflow" | "problems" | "history" | "source";

/** View is what the address says: the id of the selected step, and the panel. */
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
  /** Without a workflow id, what only members may ask is left out. */
  workflowId: string | null;
}

/** Editor is the canvas with the bar above it and the panel beside it. */
export function Editor({ session, name, title, actions, banner, view, onView, workflowId }: EditorProps) {
  const ready = useStore(session.state, (state) => state.ready);
  useEffect(() => {
    if (ready) fetchAhead();
  }, [ready]);
  const small = useNarrow();
  useEffect(() => session.setLock(small ? "View only on small screens." : null), [session, small]);
  const problems = useProblems(session, workflowId !== null);
  const context = useMemo(() => ({ session, problems }), [session, problems]);
  return (
    <ReactFlowProvider>
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

/** useProblems keeps what is wrong with the definition. A live room says it; otherwise members ask. */
function useProblems(session: Session, mayAsk: boolean) {
  const api = useApi();
  const problems = useMemo(newProblems, []);
  const graph = useStore(session.state, (state) => state.graph);
  const findings = useStore(session.state, (state) => state.findings);
  const polls = useStore(session.state, (state) => state.ready && !state.live) && mayAsk;
  useEffect(() => {
    if (findings) showFindings(problems, findings, graph.document);
  }, [problems, findings, graph]);
  useEffect(() => {
    if (polls) return pollProblems(api, graph.document, problems);
  }, [api, polls, graph, problems]);
  return problems;
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

type Part = "insert" | "find" | "shortcuts" | null;

function Workspace({ view, onView, name, workflowId, small }: WorkspaceProps) {
  const graph = useGraph();
  const { session } = useEditor();
  const empty = useShown().nodes.length === 0;
  const mayEdit = useSession((state) => state.canEdit);
  const lock = useSession((state) => state.lock);
  const leftover = useSession((state) => state.leftover);
  const canEdit = useCanEdit();
  const [palette, setPalette] = useState(empty && canEdit);
  const [part, setPart] = useState<Part>(null);
  const [insertAt, setInsertAt] = useState<InsertAt | null>(null);
  const [open, setOpen] = useState(!small);
  const was = useRef(small);
  useEffect(() => {
    if (was.current === small) return;
    was.current = small;
    setOpen(!small);
  }, [small]);

  const frame = useRef<HTMLDivElement>(null);
  const canvas = useCanvasView(frame, graph);
  const focus = useFocusOnceDrawn(canvas.focus);
  const target: Target = {
    graph,
    canEdit,
    view: canvas,
    open: (which) => {
      if (which === "palette") setPalette(!palette);
      else if (which === "panel") setOpen(!open);
      else {
        if (which === "insert") setInsertAt({ at: canvas.middle(), from: null });
        setPart(which);
      }
    },
  };
  const latest = useRef({ target, onView });
  latest.current = { target, onView };
  const actions = useMemo(() => newActions(() => latest.current.target), []);
  useActionKeys(actions);
  const show = useCallback(
    (key: string) => {
      graph.select([key]);
      canvas.fit([key]);
    },
    [graph, canvas],
  );
  const sought = useMemo(newSoughtField, []);
  const goTo = useCallback(
    (finding: Finding) => {
      const key = finding.node === null ? null : graph.document.keyOf(finding.node);
      if (key) show(key);
      latest.current.onView({ panel: key ? "step" : "workflow" });
      sought.setState({ finding });
    },
    [graph, show, sought],
  );
  const context = useMemo(() => ({ actions, show, goTo, sought }), [actions, show, goTo, sought]);
  const chosen = useAddress(view, onView);

  const close = () => setPart(null);
  return (
    <Working value={context}>
      <div className="relative flex min-h-0 flex-1">
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          {lock && mayEdit && <p className="border-b bg-info-soft px-3 py-1 text-center text-[13px]">{lock}</p>}
          <div ref={frame} className="relative flex min-h-0 flex-1 flex-col">
            <Toolbar panel={open} />
            {palette && canEdit && <Palette onClose={() => setPalette(false)} />}
            <Canvas
              frame={frame}
              onInsert={(at) => {
                setInsertAt(at);
                setPart("insert");
              }}
              // The address names the selected step, and leads to it.
              onOpen={() => {
                const key = view.node && graph.document.keyOf(view.node);
                if (key) show(key);
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
        <Suspense fallback={null}>
          {part === "find" && <Find onClose={close} />}
          {part === "shortcuts" && <ShortcutsDialog onClose={close} />}
          {part === "insert" && insertAt && (
            <Insert
              {...insertAt}
              onClose={(key) => {
                close();
                if (!key) return;
                canvas.reveal([key]);
                focus(key);
              }}
            />
          )}
          {leftover && <LeftoverDialog leftover={leftover} onClose={() => session.dismissLeftover()} />}
        </Suspense>
      </div>
    </Working>
  );
}

/** useAddress keeps the id of the selected step in the address. It returns the step's key. */
function useAddress(view: View, onView: (change: Partial<View>) => void): string | null {
  const graph = useGraph();
  const chosen = useChosen();
  const id = useNode(chosen)?.id ?? null;
  const before = useRef(chosen);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when another step is selected, or its id has changed
  useEffect(() => {
    const moved = before.current !== chosen;
    before.current = chosen;
    if (!moved && chosen === null) return; // the step of the address is not selected yet
    if (id !== view.node) onView({ node: id, ...(moved && chosen && view.panel !== "step" && { panel: "step" }) });
  }, [chosen, id, graph]);
  return chosen;
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
  const count = useStore(problems, (state) => state.list?.filter((each) => !each.warning).length ?? 0);
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
      {/* Another step, or another panel, starts at its top. */}
      <div key={`${panel} ${panel === "step" ? chosen : ""}`} className="min-h-0 flex-1 overflow-y-auto p-4">
        <TabPanel value="step">
          {node && chosen ? (
            <Inspector stepKey={chosen} node={node} workflowId={workflowId} />
          ) : (
            <p className="text-sm text-muted">Select a step on the canvas.</p>
          )}
        </TabPanel>
        <TabPanel value="workflow">
          <WorkflowPanel workflowId={workflowId} />
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
            <SourcePanel name={name} workflowId={workflowId} />
          </Suspense>
        </TabPanel>
      </div>
    </Tabs>
  );
}

/** Ended tells why somebody cannot go on. */
export function Ended({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="mx-auto w-full max-w-xl px-4 py-16">
      <Notice tone="info" title={title}>
        {children}
      </Notice>
    </div>
  );
}
