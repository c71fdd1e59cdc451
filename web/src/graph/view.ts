// How the canvas and the run page look at a graph: what is in view, how much of a card
// can be read, and that React Flow takes our measures for its own.
import { useStore, useStoreApi, type Viewport } from "@xyflow/react";
import { createContext, use, useEffect, useRef, useState } from "react";

/** How much of a card can be read at a distance: 2 all, 1 its name, 0 nothing. */
export type Level = 0 | 1 | 2;

export const Detail = createContext<Level>(2);

export function useLevel(): Level {
  return use(Detail);
}

/** useDetail follows the zoom of the canvas; only a change of level renders. */
export function useDetail(): Level {
  return useStore((state) => (state.transform[2] > 0.5 ? 2 : state.transform[2] > 0.22 ? 1 : 0));
}

const whole = 0.12;
const few = 60;

/**
 * useOnlyVisible reports whether cards out of view are left out. From far away
 * most are in view, and moving would add and remove hundreds with every frame.
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
const readable = 0.75;
const legible = 0.35;
const handful = 12;
const padding = 0.12;

/** boundsOf returns the box around all cards; null without any. */
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

/** farthest returns the smallest zoom: the graph is then some hundred pixels wide. */
export function farthest(nodes: readonly Sized[]): number {
  const box = boundsOf(nodes);
  return box ? Math.min(0.05, Math.max(0.005, dot / Math.max(box.width, box.height))) : 0.05;
}

/** Pane is the canvas on the screen. What covers a part of it is in the same measure, from its top left corner. */
export interface Pane {
  width: number;
  height: number;
  covered?: readonly Box[];
}

/**
 * uncovered returns the largest part of a pane that nothing covers, for showing something
 * with this ratio of width to height. Each cover is passed on one of its four sides.
 */
export function uncovered({ width, height, covered = [] }: Pane, ratio: number): Box {
  const gap = 12;
  let best = { x: 0, y: 0, width: 0, height: 0 };
  let most = 0;
  const pass = (left: number, top: number, right: number, bottom: number, at: number) => {
    const size = Math.min((right - left) / ratio, bottom - top);
    if (size <= most) return;
    const cover = covered[at];
    if (!cover) {
      most = size;
      best = { x: left, y: top, width: right - left, height: bottom - top };
      return;
    }
    const hit = cover.x < right && cover.x + cover.width > left && cover.y < bottom && cover.y + cover.height > top;
    if (!hit) return pass(left, top, right, bottom, at + 1);
    pass(cover.x + cover.width + gap, top, right, bottom, at + 1);
    pass(left, cover.y + cover.height + gap, right, bottom, at + 1);
    pass(left, top, cover.x - gap, bottom, at + 1);
    pass(left, top, right, cover.y - gap, at + 1);
  };
  pass(0, 0, width, height, 0);
  return most > 0 ? best : { x: 0, y: 0, width, height };
}

/** viewOf shows a box as large as it can be in what is uncovered, between two zooms. */
export function viewOf(box: Box, pane: Pane, least: number, most = 1, margin = padding): Viewport {
  const free = uncovered(pane, Math.max(box.width, 1) / Math.max(box.height, 1));
  const room = 1 - 2 * margin;
  const fit = Math.min((free.width * room) / box.width, (free.height * room) / box.height);
  const zoom = Math.min(Math.max(fit, least), most);
  return {
    x: free.x + free.width / 2 - (box.x + box.width / 2) * zoom,
    y: free.y + free.height / 2 - (box.y + box.height / 2) * zoom,
    zoom,
  };
}

/** isVisible reports whether a box is in view, and uncovered. */
export function isVisible(box: Box, pane: Pane, { x, y, zoom }: Viewport): boolean {
  const [left, top] = [box.x * zoom + x, box.y * zoom + y];
  const [right, bottom] = [left + box.width * zoom, top + box.height * zoom];
  const inside = left >= 0 && top >= 0 && right <= pane.width && bottom <= pane.height;
  const hit = (cover: Box) =>
    cover.x < right && cover.x + cover.width > left && cover.y < bottom && cover.y + cover.height > top;
  return inside && !(pane.covered ?? []).some(hit);
}

/**
 * firstView shows the whole graph. If there are more than a handful of steps, and their
 * names could not be read then, it shows the beginning: the step nearest to its top left
 * corner.
 */
export function firstView(nodes: readonly Sized[], pane: Pane): Viewport {
  const box = boundsOf(nodes);
  if (!box) return { x: 0, y: 0, zoom: 1 };
  const whole = viewOf(box, pane, 0);
  if (whole.zoom >= legible || nodes.length <= handful) return whole;
  const distance = ({ position }: Sized) => position.x - box.x + (position.y - box.y);
  const first = nodes.reduce((best, node) => (distance(node) < distance(best) ? node : best));
  const margin = Math.min(pane.width, pane.height) * padding;
  const free = uncovered(pane, pane.width / pane.height);
  return {
    x: free.x + margin - first.position.x * readable,
    y: free.y + margin - first.position.y * readable,
    zoom: readable,
  };
}

/**
 * useFirstView shows the graph as soon as the canvas knows its size, and returns whether
 * it has. While nobody has moved the view, it follows the size of the canvas, and that of
 * a graph which grows by itself; afterwards what is in the middle stays there.
 */
export function useFirstView(nodes: readonly Sized[], grows = false, covered: () => Box[] = nothing): boolean {
  const store = useStoreApi();
  const width = useStore((state) => (state.panZoom ? state.width : 0));
  const height = useStore((state) => (state.panZoom ? state.height : 0));
  const ready = width > 0 && height > 0;
  const count = grows ? nodes.length : 0;
  const last = useRef<{ width: number; height: number; view: Viewport } | null>(null);
  const latest = useRef({ nodes, covered });
  useEffect(() => {
    latest.current = { nodes, covered };
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
      : firstView(latest.current.nodes, { width, height, covered: latest.current.covered() });
    // Once moved, it stays moved: the view that was set before is kept to compare with.
    last.current = { width, height, view: moved ? before.view : view };
    void panZoom?.setViewport(view);
  }, [ready, width, height, store, count]);
  return ready;
}

const nothing = () => [];

function sameView(a: Viewport, b: Viewport): boolean {
  return Math.abs(a.x - b.x) < 1 && Math.abs(a.y - b.y) < 1 && Math.abs(a.zoom - b.zoom) < 1e-6;
}
