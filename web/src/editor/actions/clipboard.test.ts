import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Definition } from "../../definition/model.ts";
import { dismiss, toasts } from "../../ui/toast.ts";
import { Document } from "../document/document.ts";
import { GraphStore } from "../document/store.ts";
import { writeDefinition } from "../document/ydoc.ts";
import { newActions } from "./actions.ts";

beforeEach(() => {
  for (const { id } of toasts.now()) dismiss(id);
});
afterEach(() => vi.unstubAllGlobals());

/** opened opens a workflow of one step, which is selected. */
function opened() {
  const document = new Document();
  const definition = { nodes: [{ id: "align", type: "task", command: "true" }] } as unknown as Definition;
  writeDefinition(document.doc, definition, "server");
  document.editable = true;
  const graph = new GraphStore(document);
  graph.select(graph.now().nodes.map((node) => node.id));
  const view = { fit: vi.fn(), reveal: vi.fn(), middle: () => ({ x: 0, y: 0 }), focus: () => true };
  const actions = newActions(() => ({ graph, canEdit: true, view, open: vi.fn() }));
  return { actions, steps: () => document.definition().nodes?.map(({ id }) => id) ?? [] };
}

const refuse = () => Promise.reject(new DOMException("denied", "NotAllowedError"));
const said = () => toasts.now().map(({ text, description }) => `${text}. ${description}`);

for (const [name, clipboard] of Object.entries({
  "the clipboard refuses": { writeText: refuse, readText: refuse },
  "the page has no clipboard": undefined,
})) {
  test(`the menu cuts no step where ${name}`, async () => {
    vi.stubGlobal("navigator", { clipboard });
    const { actions, steps } = opened();
    actions.run("cut");
    await vi.waitFor(() =>
      expect(said()).toEqual(["The browser doesn't let this page use the clipboard. Press Ctrl X instead."]),
    );
    expect(steps()).toEqual(["align"]);
  });

  test(`the menu says how to paste where ${name}`, async () => {
    vi.stubGlobal("navigator", { clipboard });
    opened().actions.run("paste");
    await vi.waitFor(() =>
      expect(said()).toEqual(["The browser doesn't let this page use the clipboard. Press Ctrl V instead."]),
    );
  });
}

test("the menu cuts a step once the clipboard has it", async () => {
  const writeText = vi.fn((_: string) => Promise.resolve());
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  const { actions, steps } = opened();
  actions.run("cut");
  await vi.waitFor(() => expect(steps()).toEqual([]));
  expect(writeText.mock.calls[0]?.[0]).toContain("align");
});
