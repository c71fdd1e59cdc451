import "@xyflow/react/dist/base.css";
import "../../graph/canvas.css";
import {
  Background,
  Controls,
  type NodeProps,
  type OnNodesChange,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from "@xyflow/react";
import { Recycle } from "lucide-react";
import { createContext, memo, useCallback, useContext, useEffect, useMemo } from "react";
import { useStore } from "zustand";
import { stepsAfter, stepsBefore } from "../../definition/order.ts";
import { FarLines } from "../../graph/FarLines.tsx";
import { type FlowEdge, type FlowNode, flowOf } from "../../graph/flow.ts";
import { NodeCard, NoteCard } from "../../graph/NodeCard.tsx";
import { Overview } from "../../graph/Overview.tsx";
import { Detail, farthest, useDetail, useFirstView, useOnlyVisible, useOwnMeasures } from "../../graph/view.ts";
import { looks } from "../../page/status.tsx";
import { classes } from "../../ui/classes.ts";
import { duration } from "../../ui/format.ts";
import { useNow } from "../../ui/Time.tsx";
import type { RunNode } from "../queries.ts";
import type { RunStore } from "../runStore.ts";
import { nodeText } from "./items.ts";
import { shapeOf, withProcesses } from "./processes.ts";

const StoreContext = createContext<RunStore | null>(null);

/** useRunNode is the state of one node. Changes of other nodes do not render the caller. */
function useRunNode(id: string): RunNode | undefined {
  const store = useContext(StoreContext);
  if (!store) throw new Error("outside of a run");
  return useStore(store.state, (state) => state.nodes.get(id));
}

const RunTask = memo(function RunTask({ id, data, selected }: NodeProps<FlowNode>) {
  const node = useRunNode(id);
  const look = looks[node?.status ?? "pending"];
  const moving = node?.status === "running" || node?.status === "retrying";
  return (
    <NodeCard
      data={data}
      selected={selected}
      connectable={false}
      tint={node && node.status !== "pending" ? look.color : undefined}
      faded={data.faded === true}
      line={
        <span className="truncate">
          {node ? nodeText(node) : look.word}
          {node && node.attempt > 1 && `, attempt ${node.attempt}`}
          {node && <Took node={node} />}
        </span>
      }
      corner={
        <span className="flex shrink-0 gap-1" style={{ color: look.color }}>
          {node?.cached && <Recycle className="size-4" role="img" aria-label="Reused from an earlier run" />}
          <look.icon className={classes("size-5", moving && "animate-[spin_2s_linear_infinite]")} aria-hidden />
        </span>
      }
    />
  );
});

const RunNote = memo(function RunNote({ data, selected }: NodeProps<FlowNode>) {
  return <NoteCard data={data} selected={selected} />;
});

function Took({ node }: { node: RunNode }) {
  if (node.durationMs !== null && node.finishedAt) return <>, {duration(node.durationMs)}</>;
  if (node.status !== "running" || !node.startedAt) return null;
  return <Ticking since={node.startedAt} />;
}

function Ticking({ since }: { since: string }) {
  return <>, {duration(useNow() - Date.parse(since))}</>;
}

const nodeTypes = { task: RunTask, note: RunNote };
const noEdges: FlowEdge[] = [];

interface RunGraphProps {
  store: RunStore;
  chosen: string | null;
  onChoose: (id: string | null) => void;
}

/** RunGraph draws the workflow as in the editor, colored by the state of each step. */
export function RunGraph(props: RunGraphProps) {
  return (
    <StoreContext value={props.store}>
      <ReactFlowProvider>
        <Graph {...props} />
      </ReactFlowProvider>
    </StoreContext>
  );
}

function Graph({ store, chosen, onChoose }: RunGraphProps) {
  useOwnMeasures();
  const defined = useStore(store.state, (state) => state.run.definition);
  const shape = useStore(store.state, (state) => shapeOf(state.nodes.values()));
  const definition = useMemo(() => withProcesses(defined, shape), [defined, shape]);
  const base = useMemo(() => flowOf(definition), [definition]);
  const nodes = useMemo(() => {
    const edges = definition.edges ?? [];
    const near = chosen ? new Set([chosen, ...stepsBefore(chosen, edges), ...stepsAfter(chosen, edges)]) : null;
    return base.nodes.map((node) => {
      const faded = near !== null && !near.has(node.id);
      if (!faded && node.id !== chosen) return node;
      return { ...node, selected: node.id === chosen, data: faded ? { ...node.data, faded } : node.data };
    });
  }, [base, chosen, definition]);
  const flow = useReactFlow();
  const level = useDetail();
  const onlyVisible = useOnlyVisible(nodes.length);
  const ready = useFirstView(base.nodes, true);
  const limit = useMemo(() => farthest(base.nodes), [base.nodes]);
  useEffect(() => {
    if (ready && chosen && base.nodes.length > 20)
      void flow.fitView({ nodes: [{ id: chosen }], maxZoom: 1, padding: 0.8, duration: 300 });
  }, [ready, chosen, flow, base]);
  // React Flow reports a selection by click or key as a change.
  const onNodesChange: OnNodesChange<FlowNode> = (changes) => {
    for (const change of changes) if (change.type === "select" && change.selected) onChoose(change.id);
  };
  return (
    <Detail value={level}>
      <ReactFlow
        nodes={nodes}
        edges={level === 0 ? noEdges : base.edges}
        nodeTypes={nodeTypes}
        onNodesChange={onNodesChange}
        onPaneClick={() => onChoose(null)}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        deleteKeyCode={null}
        onlyRenderVisibleElements={onlyVisible}
        minZoom={limit}
        maxZoom={1.5}
        attributionPosition="bottom-left"
        preventScrolling={false}
        zoomOnScroll={false}
        panOnScroll={false}
      >
        {level === 0 && <FarLines nodes={base.nodes} edges={base.edges} />}
        <Background gap={20} />
        <Controls showInteractive={false} position="bottom-right" />
        {nodes.length > 20 && <RunMap nodes={base.nodes} />}
      </ReactFlow>
    </Detail>
  );
}

/** RunMap is an overview of the graph in the colors of the states, drawn at most once a second. */
function RunMap({ nodes }: { nodes: FlowNode[] }) {
  const store = useContext(StoreContext);
  useNow();
  const states = store?.state.getState().nodes;
  const colorOf = useCallback(
    (node: { id: string }) => looks[states?.get(node.id)?.status ?? "pending"].color,
    [states],
  );
  return <Overview nodes={nodes} colorOf={colorOf} position="top-right" />;
}
