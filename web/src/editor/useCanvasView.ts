import { useReactFlow } from "@xyflow/react";
import { type RefObject, useEffect, useMemo, useState } from "react";
import { type Box, boundsOf, farthest, isVisible, type Pane, uncovered, viewOf } from "../graph/view.ts";
import type { CanvasView } from "./actions/actions.ts";
import type { GraphStore } from "./document/store.ts";

/** What lies over the canvas. */
const panels = "[role=toolbar], [data-over-canvas], .react-flow__panel";

/** coversOf measures what lies over the canvas inside of an element. */
export function coversOf(frame: HTMLElement | null): Box[] {
  const pane = frame?.querySelector(".react-flow")?.getBoundingClientRect();
  if (!frame || !pane) return [];
  return [...frame.querySelectorAll(panels)]
    .map((panel) => panel.getBoundingClientRect())
    .filter(({ width, height }) => width > 0 && height > 0)
    .map(({ left, top, width, height }) => ({ x: left - pane.left, y: top - pane.top, width, height }));
}

const motion = { duration: 200 };

/** useCanvasView moves the view of the canvas inside of an element. */
export function useCanvasView(frame: RefObject<HTMLElement | null>, graph: GraphStore): CanvasView {
  const flow = useReactFlow();
  return useMemo(() => {
    const paneOf = (): Pane => {
      const { width = 0, height = 0 } = frame.current?.querySelector(".react-flow")?.getBoundingClientRect() ?? {};
      return { width, height, covered: coversOf(frame.current) };
    };
    const cardsOf = (keys?: readonly string[]) => {
      const wanted = new Set(keys);
      const { nodes } = graph.now();
      return keys ? nodes.filter((node) => wanted.has(node.id)) : nodes;
    };
    const showAll = (keys?: readonly string[], most = 1) => {
      const box = boundsOf(cardsOf(keys));
      if (box) void flow.setViewport(viewOf(box, paneOf(), farthest(graph.now().nodes), most), motion);
    };
    return {
      fit: (keys) => showAll(keys),
      reveal: (keys) =>
        // The steps may bring the map with them, which covers a part of the canvas once it is drawn.
        void requestAnimationFrame(() => {
          const [pane, view] = [paneOf(), flow.getViewport()];
          const hidden = cardsOf(keys).some(
            ({ position, width = 0, height = 0 }) => !isVisible({ ...position, width, height }, pane, view),
          );
          if (hidden) showAll(keys, view.zoom);
        }),
      middle: () => {
        const { x, y, width, height } = uncovered(paneOf(), 1);
        const { left = 0, top = 0 } = frame.current?.querySelector(".react-flow")?.getBoundingClientRect() ?? {};
        return flow.screenToFlowPosition({ x: left + x + width / 2, y: top + y + height / 2 }, { snapToGrid: false });
      },
      focus: (key) => {
        const card = frame.current?.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(key)}"]`);
        card?.focus();
        return card !== null && card !== undefined;
      },
    };
  }, [flow, frame, graph]);
}

const mostFrames = 120;

/**
 * useFocusOnceDrawn gives the keyboard to a step that was just added. Its card may be drawn only when the view has
 * moved there, and the dialog that added it gives the keyboard back to what had it before, first.
 */
export function useFocusOnceDrawn(focus: CanvasView["focus"]): (key: string) => void {
  const [key, setKey] = useState<string | null>(null);
  useEffect(() => {
    if (key === null) return;
    let frame = 0;
    const look = (frames: number) => {
      if (frames === 0 || focus(key)) setKey(null);
      else frame = requestAnimationFrame(() => look(frames - 1));
    };
    const timer = setTimeout(() => look(mostFrames));
    return () => {
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    };
  }, [key, focus]);
  return setKey;
}
