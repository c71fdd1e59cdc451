import "@xyflow/react/dist/base.css";
import "../graph/canvas.css";
import {
  Background,
  type Connection,
  ConnectionMode,
  ControlButton,
  Controls,
  type NodeProps,
  type OnConnectEnd,
  ReactFlow,
  useKeyPress,
  useReactFlow,
} from "@xyflow/react";
import { Maximize, TriangleAlert } from "lucide-react";
import { memo, type RefObject, useCallback, useEffect, useMemo, useRef } from "react";
import { useStore } from "zustand";
import { FarLines } from "../graph/FarLines.tsx";
import { type FlowEdge, type FlowNode, withProblems } from "../graph/flow.ts";
import { NodeCard, NoteCard } from "../graph/NodeCard.tsx";
import { Overview } from "../graph/Overview.tsx";
import { card as measures } from "../graph/ports.ts";
import { Detail, farthest, useDetail, useFirstView, useOnlyVisible, useOwnMeasures } from "../graph/view.ts";
import { toast } from "../ui/toast.ts";
import { actions as table } from "./actions/actions.ts";
import { useCanEdit, useEditor, useFindingsOf, useGraph, useSession, useShown, useWorkspace } from "./context.ts";
import { add } from "./document/kinds.ts";
import type { InsertAt } from "./Insert.tsx";
import { Cursors } from "./People.tsx";
import { coversOf } from "./useCanvasView.ts";

const TaskNode = memo(function TaskNode({ id, data, selected }: NodeProps<FlowNode>) {
  const problems = useFindingsOf(data.node.id).filter((each) => !each.warning);
  const canEdit = useSession((state) => state.canEdit);
  const others = useStore(useEditor().session.presence, (state) => state.chosen.get(id));
  return (
    <>
      <NodeCard
        data={data}
        selected={selected}
        connectable={canEdit}
        tint={others?.[0]?.color}
        corner={
          problems.length > 0 && (
            <span title={problems.map((each) => each.message).join("\n")}>
              <TriangleAlert className="size-4 text-warn" role="img" aria-label="Has problems" />
            </span>
          )
        }
      />
      {others && others.length > 0 && (
        <span
          className="absolute -top-5 left-1 rounded px-1.5 text-[11px] font-medium text-[white]"
          style={{ background: others[0]?.color }}
        >
          {others.map((person) => person.name).join(", ")}
        </span>
      )}
    </>
  );
});

const NoteNode = memo(function NoteNode({ id, data, selected }: NodeProps<FlowNode>) {
  const others = useStore(useEditor().session.presence, (state) => state.chosen.get(id));
  return <NoteCard data={data} selected={selected} tint={others?.[0]?.color} />;
});

const nodeTypes = { task: TaskNode, note: NoteNode };
const noEdges: FlowEdge[] = [];
const colorOf = (node: { type?: string | undefined }) => (node.type === "note" ? "var(--warn)" : "var(--muted)");
const snap: [number, number] = [10, 10];
const throttle = 33;
const { width } = measures;

// Shift with a drag selects a box.
const selectionKeys = ["Shift", "Meta", "Control"];

interface CanvasProps {
  /** The element with everything that lies over the canvas. */
  frame: RefObject<HTMLElement | null>;
  onInsert: (at: InsertAt) => void;
  onOpen: () => void;
}

/** Canvas draws the graph, and lets people edit it together. */
export function Canvas({ frame, onInsert, onOpen }: CanvasProps) {
  useOwnMeasures();
  const { session } = useEditor();
  const { actions } = useWorkspace();
  const graph = useGraph();
  const shown = useShown();
  const canEdit = useCanEdit();
  const flow = useReactFlow();
  const share = useShare();
  const panning = useKeyPress("Space");
  const level = useDetail();
  const onlyVisible = useOnlyVisible(shown.nodes.length);
  const ready = useFirstView(shown.nodes, false, () => coversOf(frame.current));
  const limit = useMemo(() => farthest(shown.nodes), [shown.nodes]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the canvas is opened
  useEffect(() => {
    if (ready) onOpen();
  }, [ready]);

  const faulty = useStore(useEditor().problems, (state) => state.lines);
  const edges = useMemo(() => withProblems(shown.edges, faulty), [shown.edges, faulty]);

  const selection = useMemo(() => shown.nodes.filter((node) => node.selected).map((node) => node.id), [shown.nodes]);
  const chosen = selection.join(" ");
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the selection itself has changed
  useEffect(() => share({ sel: selection.slice(0, 100) }), [chosen, share]);

  const onConnectEnd: OnConnectEnd = (event, state) => {
    if (!canEdit || state.isValid || !state.fromNode || !state.fromHandle || state.toNode) return;
    const point = "changedTouches" in event ? event.changedTouches[0] : event;
    if (!point) return;
    const { id: from, type } = { id: state.fromNode.id, type: state.fromHandle.type };
    const handle = state.fromHandle.id ?? null;
    const card = document.elementFromPoint(point.clientX, point.clientY)?.closest(".react-flow__node");
    const other = card instanceof HTMLElement ? card.dataset.id : undefined;
    if (other !== undefined) {
      if (other === from) return;
      const made =
        type === "source"
          ? graph.document.connect(from, handle, other, null)
          : graph.document.connect(other, null, from, handle);
      if (!made) toast.info("These steps are already connected, or would wait for each other.");
      return;
    }
    const at = flow.screenToFlowPosition({ x: point.clientX, y: point.clientY });
    onInsert({
      at: { x: at.x + (type === "source" ? width / 2 : -width / 2), y: at.y },
      from: { key: from, handle, type },
    });
  };
  const drag = () => {
    const places = [...graph.dragged()].slice(0, 200);
    share({ drag: Object.fromEntries(places.map(([key, { x, y }]) => [key, [Math.round(x), Math.round(y)]])) });
  };
  const drop = () => {
    graph.drop();
    share({ drag: {} }, true);
  };
  return (
    <section
      aria-label="Canvas"
      className="relative min-h-0 min-w-0 flex-1"
      onDragOver={(event) =>
        canEdit && event.dataTransfer.types.includes("application/x-millrace") && event.preventDefault()
      }
      onDrop={(event) => {
        const kind = event.dataTransfer.getData("application/x-millrace");
        if (!kind || !canEdit) return;
        event.preventDefault();
        event.stopPropagation();
        add(graph, kind, flow.screenToFlowPosition({ x: event.clientX, y: event.clientY }));
      }}
      onPointerMove={(event) => {
        if (session.awareness) {
          const { x, y } = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
          share({ cursor: { x: Math.round(x), y: Math.round(y) } });
        }
      }}
      onPointerLeave={() => share({ cursor: null }, true)}
    >
      <Detail value={level}>
        <ReactFlow
          nodes={shown.nodes}
          edges={level === 0 ? noEdges : edges}
          nodeTypes={nodeTypes}
          onNodesChange={(changes) => graph.applyNodes(changes)}
          onEdgesChange={(changes) => graph.applyEdges(changes)}
          onNodeDrag={drag}
          onNodeDragStop={drop}
          onSelectionDrag={drag}
          onSelectionDragStop={drop}
          onConnect={({ source, sourceHandle, target, targetHandle }: Connection) =>
            graph.document.connect(source, sourceHandle, target, targetHandle)
          }
          onConnectEnd={onConnectEnd}
          isValidConnection={({ source, target }) => source !== target && !graph.document.reaches(target, source)}
          onDoubleClick={(event) => {
            if (!canEdit || !(event.target as Element).classList.contains("react-flow__pane")) return;
            onInsert({ at: flow.screenToFlowPosition({ x: event.clientX, y: event.clientY }), from: null });
          }}
          connectionMode={ConnectionMode.Strict}
          // From afar nobody sees which step they would move: dragging moves the view. So it does with Space.
          nodesDraggable={canEdit && level > 0 && !panning}
          nodesConnectable={canEdit}
          edgesReconnectable={false}
          multiSelectionKeyCode={selectionKeys}
          elevateNodesOnSelect
          deleteKeyCode={null}
          zoomOnDoubleClick={false}
          onlyRenderVisibleElements={onlyVisible}
          snapToGrid
          snapGrid={snap}
          minZoom={limit}
          maxZoom={2}
          attributionPosition="bottom-left"
          ariaLabelConfig={{ "node.a11yDescription.default": "Press Enter to select a step, arrow keys to move it." }}
        >
          {level === 0 && <FarLines nodes={shown.nodes} edges={edges} />}
          <Background gap={20} />
          <Controls showInteractive={false} showFitView={false} position="bottom-left" className="mb-5!">
            <ControlButton title={table.fit.label} aria-label={table.fit.label} onClick={() => actions.run("fit")}>
              <Maximize className="fill-none!" aria-hidden />
            </ControlButton>
          </Controls>
          {shown.nodes.length > 8 && <Overview nodes={shown.nodes} colorOf={colorOf} position="bottom-right" />}
          <Cursors />
        </ReactFlow>
      </Detail>
    </section>
  );
}

type Shared = Partial<{ cursor: { x: number; y: number } | null; sel: string[]; drag: Record<string, number[]> }>;

/** useShare shows others what this person does, at most thirty times a second. */
function useShare(): (fields: Shared, now?: boolean) => void {
  const { session } = useEditor();
  const waiting = useRef<Shared>({});
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  useEffect(
    () => () => {
      if (timer.current) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );
  return useCallback(
    (fields, now = false) => {
      Object.assign(waiting.current, fields);
      const send = () => {
        timer.current = null;
        const state = session.awareness?.getLocalState();
        if (state) session.awareness?.setLocalState({ ...state, ...waiting.current });
        waiting.current = {};
      };
      if (now) {
        if (timer.current) clearTimeout(timer.current);
        send();
      } else timer.current ??= setTimeout(send, throttle);
    },
    [session],
  );
}
