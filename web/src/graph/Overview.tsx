import { type Node, Panel, useReactFlow, useStore } from "@xyflow/react";
import { memo, type PointerEvent, useDeferredValue, useMemo } from "react";
import { type Box, boundsOf } from "./view.ts";

interface OverviewProps {
  nodes: Node[];
  /** A colour for each node, by its name in the style sheet. */
  colorOf: (node: Node) => string;
  position: "top-right" | "bottom-right";
}

const margin = 100;

/**
 * Overview is a small map of the whole graph, which leads elsewhere in it. All nodes of
 * one color are one shape: an element for each, as React Flow's own map has, costs more
 * than the canvas itself when there are thousands.
 */
export const Overview = memo(function Overview({ nodes, colorOf, position }: OverviewProps) {
  const flow = useReactFlow();
  const shown = useDeferredValue(nodes);
  const box = useMemo(() => widened(boundsOf(shown)), [shown]);
  const shapes = useMemo(() => {
    const byColor = new Map<string, string>();
    for (const node of shown) {
      const { width = 0, height = 0, position: at } = node;
      const color = colorOf(node);
      byColor.set(color, `${byColor.get(color) ?? ""}M${at.x} ${at.y}h${width}v${height}h${-width}z`);
    }
    return [...byColor];
  }, [shown, colorOf]);
  const go = (event: PointerEvent<SVGSVGElement>) => {
    if (event.buttons !== 1) return;
    const matrix = event.currentTarget.getScreenCTM();
    if (!matrix) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    void flow.setCenter(x, y, { zoom: flow.getZoom() });
  };
  return (
    <Panel position={position} className="overflow-hidden rounded-lg border bg-surface max-md:hidden">
      <svg
        role="img"
        aria-label="Map of the graph"
        className="block h-37.5 w-50 cursor-pointer touch-none"
        viewBox={`${box.x} ${box.y} ${box.width} ${box.height}`}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          go(event);
        }}
        onPointerMove={go}
      >
        {shapes.map(([color, shape]) => (
          <path key={color} d={shape} fill={color} />
        ))}
        <Outside />
      </svg>
    </Panel>
  );
});

/** Outside dims what the canvas does not show. */
function Outside() {
  const [x, y, zoom] = useStore((state) => state.transform);
  const width = useStore((state) => state.width / zoom);
  const height = useStore((state) => state.height / zoom);
  const far = 1e6;
  return (
    <path
      d={`M${-far} ${-far}h${2 * far}v${2 * far}h${-2 * far}z M${-x / zoom} ${-y / zoom}h${width}v${height}h${-width}z`}
      fill="color-mix(in srgb, var(--bg) 65%, transparent)"
      fillRule="evenodd"
      stroke="var(--muted)"
      vectorEffect="non-scaling-stroke"
    />
  );
}

function widened(box: Box | null): Box {
  if (!box) return { x: 0, y: 0, width: 1, height: 1 };
  return { x: box.x - margin, y: box.y - margin, width: box.width + 2 * margin, height: box.height + 2 * margin };
}
