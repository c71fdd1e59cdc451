import { ViewportPortal } from "@xyflow/react";
import { memo, useMemo } from "react";
import { classes } from "../ui/classes.ts";
import { type FlowEdge, type FlowNode, strokes } from "./flow.ts";

/**
 * FarLines is every line as a bare stroke, for a view from afar. Each line of
 * React Flow's own follows every move of the view; of thousands that is most of
 * the work of a frame.
 */
export const FarLines = memo(function FarLines({ nodes, edges }: { nodes: FlowNode[]; edges: FlowEdge[] }) {
  const lines = useMemo(() => strokes(nodes, edges), [nodes, edges]);
  return (
    <ViewportPortal>
      <svg className="far-lines" aria-hidden>
        {lines.map(({ id, d, selected, className }) => (
          <g key={id} data-id={id} className={classes("react-flow__edge", selected && "selected", className)}>
            <path className="react-flow__edge-path" d={d} />
          </g>
        ))}
      </svg>
    </ViewportPortal>
  );
});
