import { render } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { chooseSingleKeys } from "../page/singleKeys.ts";
import { useShortcuts } from "./shortcuts.ts";

const openPalette = vi.fn();
const go = vi.fn();

function Page({ dialog = false }: { dialog?: boolean }) {
  useShortcuts({ openPalette, go });
  return dialog ? <div role="dialog" /> : null;
}

const press = (key: string, more: KeyboardEventInit = {}) =>
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));

beforeEach(() => {
  openPalette.mockClear();
  go.mockClear();
});

test("g and a letter goes to a place, and ? opens the palette", () => {
  render(<Page />);
  for (const key of ["g", "r", "?"]) press(key);
  expect(go.mock.calls).toEqual([["/runs"]]);
  expect(openPalette).toHaveBeenCalledTimes(1);
});

test("single keys do nothing behind a dialog, wherever the focus is", () => {
  const { rerender } = render(<Page dialog />);
  for (const key of ["g", "r", "?"]) press(key);
  expect(go).not.toHaveBeenCalled();
  expect(openPalette).not.toHaveBeenCalled();
  press("g");
  rerender(<Page />);
  press("r");
  expect(go).not.toHaveBeenCalled();
});

test("single keys can be turned off, and Ctrl+K stays", () => {
  chooseSingleKeys(false);
  render(<Page />);
  for (const key of ["g", "r", "?"]) press(key);
  expect(go).not.toHaveBeenCalled();
  expect(openPalette).not.toHaveBeenCalled();
  press("k", { ctrlKey: true });
  expect(openPalette).toHaveBeenCalledTimes(1);
  chooseSingleKeys(true);
  for (const key of ["g", "r"]) press(key);
  expect(go.mock.calls).toEqual([["/runs"]]);
});
