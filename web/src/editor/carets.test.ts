import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { expect, test } from "vitest";
import { Awareness, applyAwarenessUpdate, encodeAwarenessUpdate } from "y-protocols/awareness";
import * as Y from "yjs";
import { caretOf, carets, placeIn } from "./carets.ts";

test("a place stays where it was while others type before it", () => {
  const doc = new Y.Doc();
  const text = doc.getText("a");
  text.insert(0, "sort words");
  const said = { anchor: placeIn(text, 5), head: placeIn(text, 10) };
  text.insert(0, "cat x | ");
  expect(caretOf(said, text)).toEqual({ anchor: 13, head: 18 });
  text.delete(0, 13);
  expect(caretOf(said, text)).toEqual({ anchor: 0, head: 5 });
});

test("what is no place in this text is none", () => {
  const doc = new Y.Doc();
  const text = doc.getText("a");
  const other = doc.getText("b");
  text.insert(0, "one");
  other.insert(0, "two");
  const elsewhere = placeIn(other, 1);
  const unknown = { item: { client: 7, clock: 99 }, type: null, tname: null, assoc: 0 };
  const broken = { item: { client: doc.clientID, clock: "x" }, type: 1, tname: {} };
  for (const said of [
    null,
    3,
    {},
    { anchor: elsewhere, head: elsewhere },
    { anchor: unknown, head: unknown },
    { anchor: broken, head: broken },
    { anchor: [], head: "x" },
  ]) {
    expect(caretOf(said, text)).toBeNull();
  }
});

test("another person's caret and selection are shown, and go with them", () => {
  const doc = new Y.Doc();
  const text = doc.getText("a");
  text.insert(0, "sort words");
  const awareness = new Awareness(doc);
  const view = new EditorView({
    state: EditorState.create({ doc: text.toString(), extensions: carets(awareness, text) }),
  });
  const theirs = new Awareness(new Y.Doc());
  const tell = (state: Record<string, unknown> | null) => {
    theirs.setLocalState(state);
    applyAwarenessUpdate(awareness, encodeAwarenessUpdate(theirs, [theirs.clientID]), null);
  };
  tell({ user: { name: "Bo" }, caret: { anchor: placeIn(text, 0), head: placeIn(text, 4) } });
  expect(view.dom.querySelector(".cm-other")?.textContent).toBe("Bo");
  expect(view.dom.querySelector(".cm-other-words")?.textContent).toBe("sort");
  view.dispatch({ changes: { from: 0, insert: "# " } });
  expect(view.dom.querySelector(".cm-other-words")?.textContent).toBe("sort");
  tell({ user: { name: "Bo" }, caret: "nonsense" });
  expect(view.dom.querySelector(".cm-other")).toBeNull();
  tell(null);
  view.destroy();
  awareness.destroy();
  theirs.destroy();
});
