import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { chooseSingleKeys } from "../../page/singleKeys.ts";
import type { Actions, Target } from "./actions.ts";
import { useActionKeys } from "./useActionKeys.ts";

afterEach(() => {
  cleanup();
  chooseSingleKeys(true);
});

function Keys({ actions, dialog = false }: { actions: Actions; dialog?: boolean }) {
  useActionKeys(actions);
  return dialog ? <div role="dialog" /> : null;
}

test("a letter alone does nothing once single keys are turned off", () => {
  const done: string[] = [];
  const target = { canEdit: true } as Target;
  render(<Keys actions={{ target: () => target, run: (name) => done.push(name) }} />);
  const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
  press();
  expect(done).toHaveLength(1);
  chooseSingleKeys(false);
  press();
  expect(done).toHaveLength(1);
});

test("keys do nothing behind a dialog, wherever the focus is", () => {
  const done: string[] = [];
  const target = { canEdit: true } as Target;
  const actions: Actions = { target: () => target, run: (name) => done.push(name) };
  const { rerender } = render(<Keys actions={actions} dialog />);
  const press = () => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
    const paste = new Event("paste", { bubbles: true });
    document.body.dispatchEvent(Object.assign(paste, { clipboardData: {} }));
  };
  press();
  expect(done).toEqual([]);
  rerender(<Keys actions={actions} />);
  press();
  expect(done).toEqual(["insert", "paste"]);
});
