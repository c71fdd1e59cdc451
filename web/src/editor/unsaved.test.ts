import { expect, test } from "vitest";
import * as Y from "yjs";
import monteCarlo from "../../../examples/monte-carlo/workflow.json";
import type { Definition } from "../definition/model.ts";
import { Document } from "./document/document.ts";
import { rename } from "./document/rename.ts";
import { keyedOf, writeDefinition } from "./document/ydoc.ts";
import { descends, Unsaved } from "./unsaved.ts";
import type { UnsavedEdits } from "./unsavedStore.ts";

const base = monteCarlo.definition as unknown as Definition;
const [first] = (base.nodes ?? []).map((node) => node.id) as [string];

function documentOf(definition: Definition): Document {
  const document = new Document();
  writeDefinition(document.doc, definition, "server");
  document.editable = true;
  return document;
}

/** kept is what a browser keeps of edits. */
function kept(document: Document, before: UnsavedEdits["base"]): UnsavedEdits {
  const { doc } = document;
  return {
    key: "k",
    known: Y.encodeStateVector(doc),
    state: Y.encodeStateAsUpdate(doc),
    base: before,
    tag: null,
    at: 0,
  };
}

test("edits of a document that started afresh are made in the new one, under the step's new id too", async () => {
  const old = documentOf(base);
  const before = keyedOf(old.doc);
  await rename(old, async () => null, { kind: "step", name: first }, "renamed");
  old.text(first, "command")?.insert(0, "# mine\n");
  const fresh = documentOf(base);
  fresh.setField(first, "name", "Theirs");
  new Unsaved(fresh, "place", () => null).apply([kept(old, before)]);
  const node = fresh.definition().nodes?.find(({ id }) => id === "renamed");
  expect(node).toMatchObject({ name: "Theirs" });
  expect(node?.command).toMatch(/^# mine\n/);
  expect(fresh.definition().nodes).toHaveLength(base.nodes?.length ?? 0);
});

test("edits that an earlier version of the app kept are made, too", () => {
  const old = documentOf(base);
  old.setField(first, "name", "Mine");
  const fresh = documentOf(base);
  new Unsaved(fresh, "place", () => null).apply([kept(old, base)]);
  expect(fresh.node(first)?.name).toBe("Mine");
});

test("a document that started afresh does not descend from what was known", () => {
  const [one, fresh] = [new Y.Doc(), new Y.Doc()];
  writeDefinition(one, base, "server");
  const known = Y.encodeStateVector(one);
  const later = new Y.Doc();
  Y.applyUpdate(later, Y.encodeStateAsUpdate(one));
  writeDefinition(later, { ...base, nodes: [] }, "server");
  writeDefinition(fresh, base, "server");
  expect(descends(later, known)).toBe(true);
  expect(descends(fresh, known)).toBe(false);
});
