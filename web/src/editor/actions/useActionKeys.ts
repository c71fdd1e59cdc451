import { useEffect } from "react";
import { singleKeys } from "../../page/singleKeys.ts";
import { covered, typing } from "../../ui/typing.ts";
import { type Action, type Actions, actionOf, names, actions as table, whyNot } from "./actions.ts";
import { pressed } from "./keys.ts";

/** useActionKeys does actions when their keys are pressed, unless somebody types or a dialog is open. A letter alone can be turned off. */
export function useActionKeys(actions: Actions): void {
  useEffect(() => {
    const isCanvas = (event: Event) => {
      const target = event.target as Element | null;
      return !typing(target) && !target?.closest(".cm-editor") && !covered();
    };
    const press = (event: KeyboardEvent) => {
      if (!isCanvas(event)) return;
      const keys = pressed(event);
      if (keys.length === 1 && !singleKeys()) return;
      const name = actionOf(keys);
      if (!name || whyNot(name, actions.target()) !== null) return;
      event.preventDefault();
      actions.run(name);
    };
    const clip = (event: ClipboardEvent) => {
      const name = names.find((each) => (table[each] as Action).event === event.type);
      if (!name || !isCanvas(event) || !event.clipboardData) return;
      if (event.type !== "paste" && getSelection()?.toString()) return; // text of the page
      if (whyNot(name, actions.target()) !== null) return;
      event.preventDefault();
      actions.run(name, event.clipboardData);
    };
    addEventListener("keydown", press);
    for (const type of ["copy", "cut", "paste"] as const) addEventListener(type, clip);
    return () => {
      removeEventListener("keydown", press);
      for (const type of ["copy", "cut", "paste"] as const) removeEventListener(type, clip);
    };
  }, [actions]);
}
