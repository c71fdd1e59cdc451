import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { expect, test } from "vitest";
import { yCollab } from "y-codemirror.next";
import { Awareness, applyAwarenessUpdate, encodeAwarenessUpdate } from "y-protocols/awareness";
import * as Y from "yjs";
import { caretOf, TextPresence } from "./textPresence.ts";

const placeIn = (text: Y.Text, index: number) =>
  Y.relativePositionToJSON(Y.createRelativePositionFromTypeIndex(text, index));

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
  expect(caretOf({ anchor: placeIn(text, 1), head: placeIn(text, 2) }, text)).not.toBeNull();
});

test("another person's caret and selection are shown, and go with them", () => {
  const doc = new Y.Doc();
  const text = doc.getText("a");
  text.insert(0, "sort words");
  const awareness = new Awareness(doc);
  const view = new EditorView({
    state: EditorState.create({
      doc: text.toString(),
      extensions: yCollab(text, new TextPresence(awareness, text), { undoManager: false }),
    }),
  });
  const theirs = new Awareness(new Y.Doc());
  const tell = (state: Record<string, unknown> | null) => {
    theirs.setLocalState(state);
    applyAwarenessUpdate(awareness, encodeAwarenessUpdate(theirs, [theirs.clientID]), null);
  };
  tell({ user: { name: "Bo" }, caret: { anchor: placeIn(text, 0), head: placeIn(text, 4) } });
  expect(view.dom.querySelector(".cm-ySelectionInfo")?.textContent).toBe("Bo");
  const selection = view.dom.querySelector<HTMLElement>(".cm-ySelection");
  expect(selection?.textContent).toBe("sort");
  expect(selection?.style.borderBottomStyle).toBe("solid");
  expect(selection?.style.backgroundColor).toBe("transparent");
  view.dispatch({ changes: { from: 0, insert: "# " } });
  expect(text.toString()).toBe("# sort words");
  expect(view.dom.querySelector(".cm-ySelection")?.textContent).toBe("sort");
  tell({ user: { name: "Bo" }, caret: "nonsense" });
  expect(view.dom.querySelector(".cm-ySelectionInfo")).toBeNull();
  tell(null);
  view.destroy();
  awareness.destroy();
  theirs.destroy();
});
