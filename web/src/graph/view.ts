// What the canvas and the run page share in how a graph is looked at: the
// first view of it, and that React Flow takes our measures for its own.
import { useStore, useStoreApi, type Viewport } from "@xyflow/react";
import { createContext, use, useEffect, useRef, useState } from "react";

/** How much of a card can be read at a distance: 2 all, 1 its name, 0 nothing. */
export type Level = 0 | 1 | 2;

export const Detail = createContext<Level>(2);

export function useLevel(): Level {
  return use(Detail);
}

/** useDetail follows how near the canvas is; only a change of level renders. */
export function useDetail(): Level {
  return useStore((state) => (state.transform[2] > 0.5 ? 2 : state.transform[2] > 0.22 ? 1 : 0));
}

const whole = 0.12;
const few = 60;

/**
 * useOnlyVisible tells whether cards out of view are left out. From far away
 * most are in view, and moving would put hundreds in and out with every frame.
 */
export function useOnlyVisible(count: number): boolean {
  return useStore((state) => count > few && state.transform[2] > whole);
}

/**
 * useOwnMeasures stops React Flow from measuring cards. Their sizes and ends are
 * numbers that it is given; what it measures of a card without ends, drawn from
 * afar, would take the ends of its lines away. Call it above ReactFlow, which
 * keeps what it finds when it is first rendered.
 */
export function useOwnMeasures(): void {
  const store = useStoreApi();
  useState(() => store.setState({ updateNodeInternals: () => {} }));
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Sized {
  position: { x: number; y: number };
  width?: number | undefined;
  height?: number | undefined;
}

const dot = 400;
const readable = 0.6;
const legible = 0.22;
const padding = 0.12;

/** boundsOf is the box around all nodes; null without any. */
export function boundsOf(nodes: readonly Sized[]): Box | null {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { position, width = 0, height = 0 } of nodes) {
    left = Math.min(left, position.x);
    top = Math.min(top, position.y);
    right = Math.max(right, position.x + width);
    bottom = Math.max(bottom, position.y + height);
  }
  return left > right ? null : { x: left, y: top, width: right - left, height: bottom - top };
}

/** farthest is how far one can go back: until the graph is some hundred pixels wide. */
export function farthest(nodes: readonly Sized[]): number {
  const box = boundsOf(nodes);
  return box ? Math.min(0.05, Math.max(0.005, dot / Math.max(box.width, box.height))) : 0.05;
}

/**
 * firstView shows the whole graph. Of a large one whose names could not be read
 * any more it shows the beginning: the step nearest to its top left corner.
 */
export function firstView(nodes: readonly Sized[], pane: { width: number; height: number }): Viewport {
  const box = boundsOf(nodes);
  if (!box) return { x: 0, y: 0, zoom: 1 };
  const room = 1 - 2 * padding;
  const fit = Math.min((pane.width * room) / box.width, (pane.height * room) / box.height, 1);
  if (fit > legible || nodes.length <= few) {
    return {
      x: pane.width / 2 - (box.x + box.width / 2) * fit,
      y: pane.height / 2 - (box.y + box.height / 2) * fit,
      zoom: fit,
    };
  }
  const away = ({ position }: Sized) => position.x - box.x + (position.y - box.y);
  const first = nodes.reduce((best, node) => (away(node) < away(best) ? node : best));
  const margin = Math.min(pane.width, pane.height) * padding;
  return {
    x: margin - first.position.x * readable,
    y: margin - first.position.y * readable,
    zoom: readable,
  };
}

/**
 * useFirstView shows the graph as soon as the canvas knows its size, and tells
 * when it has. While nobody has moved the view, it follows the canvas's size, and
 * that of a graph which grows by itself; afterwards what is in the middle stays there.
 */
export function useFirstView(nodes: readonly Sized[], grows = false): boolean {
  const store = useStoreApi();
  const width = useStore((state) => (state.panZoom ? state.width : 0));
  const height = useStore((state) => (state.panZoom ? state.height : 0));
  const ready = width > 0 && height > 0;
  const count = grows ? nodes.length : 0;
  const last = useRef<{ width: number; height: number; view: Viewport } | null>(null);
  const latest = useRef(nodes);
  useEffect(() => {
    latest.current = nodes;
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: a graph that has grown is looked at anew
  useEffect(() => {
    if (!ready) return;
    const { panZoom, transform } = store.getState();
    const [x, y, zoom] = transform;
    const before = last.current;
    const moved = before !== null && !sameView(before.view, { x, y, zoom });
    const view = moved
      ? { x: x + (width - before.width) / 2, y: y + (height - before.height) / 2, zoom }
      : firstView(latest.current, { width, height });
    // Once moved, it stays moved: the view that was set before is kept to compare with.
    last.current = { width, height, view: moved ? before.view : view };
    void panZoom?.setViewport(view);
  }, [ready, width, height, store, count]);
  return ready;
}

function sameView(a: Viewport, b: Viewport): boolean {
  return Math.abs(a.x - b.x) < 1 && Math.abs(a.y - b.y) < 1 && Math.abs(a.zoom - b.zoom) < 1e-6;
}
