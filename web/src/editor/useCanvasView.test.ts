import { renderHook, waitFor } from "@testing-library/react";
import { act } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { useFocusOnceDrawn } from "./useCanvasView.ts";

afterEach(() => vi.unstubAllGlobals());

test("a step that was added gets the focus once its card is drawn", async () => {
  const frames: (() => void)[] = [];
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => frames.push(draw));
  let drawn = false;
  const focus = vi.fn(() => drawn);
  const { result } = renderHook(() => useFocusOnceDrawn(focus));
  act(() => result.current("a"));
  await waitFor(() => expect(frames).toHaveLength(1));
  frames.shift()?.();
  expect(frames).toHaveLength(1);
  drawn = true;
  act(() => frames.shift()?.());
  expect(frames).toHaveLength(0);
  expect(focus.mock.results.map(({ value }) => value)).toEqual([false, false, true]);
});
