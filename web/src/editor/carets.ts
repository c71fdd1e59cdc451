// Where the others are in a shared text: their carets, and what they have
// selected. A place is told relative to the letters around it, so that it stays
// right however the text changes on its way.
import { Annotation, type Extension, type Range, StateEffect } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, ViewPlugin, type ViewUpdate, WidgetType } from "@codemirror/view";
import type { Awareness } from "y-protocols/awareness";
import * as Y from "yjs";
import { isRecord } from "../api/failure.ts";
import { type Person, personOf } from "./presence.ts";

/** Marks a change of the view that came from the shared text. */
export const Shared = Annotation.define<boolean>();

const moved = StateEffect.define<null>();
const pause = 60;

/** carets shows the others in this text, and tells them where this person is. */
export function carets(awareness: Awareness, text: Y.Text): Extension {
  return [
    shareCaret(awareness, text),
    ViewPlugin.define((view) => new Others(view, awareness, text), { decorations: (others) => others.shown }),
  ];
}

/** caretOf is where somebody says to be in a text; null when it is elsewhere, or no place at all. */
export function caretOf(said: unknown, text: Y.Text): { anchor: number; head: number } | null {
  if (!isRecord(said) || !text.doc) return null;
  const anchor = indexOf(said.anchor, text, text.doc);
  const head = indexOf(said.head, text, text.doc);
  return anchor === null || head === null ? null : { anchor, head };
}

function indexOf(said: unknown, text: Y.Text, doc: Y.Doc): number | null {
  try {
    const place = Y.createAbsolutePositionFromRelativePosition(Y.createRelativePositionFromJSON(said), doc);
    return place?.type === text ? place.index : null;
  } catch {
    return null; // what others say need not be a place
  }
}

/** placeIn is a place as others are sent it. */
export function placeIn(text: Y.Text, index: number): unknown {
  return Y.relativePositionToJSON(Y.createRelativePositionFromTypeIndex(text, index));
}

/** shareCaret shows others where this person is for as long as they are in the text. */
function shareCaret(awareness: Awareness, text: Y.Text): Extension {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const share = (view: EditorView) => {
    const { anchor, head } = view.state.selection.main;
    const here = view.hasFocus ? { anchor: placeIn(text, anchor), head: placeIn(text, head) } : null;
    if (here || awareness.getLocalState()?.caret) awareness.setLocalStateField("caret", here);
  };
  return [
    EditorView.updateListener.of(({ view, selectionSet, docChanged, focusChanged }) => {
      if (!selectionSet && !docChanged && !focusChanged) return;
      clearTimeout(timer);
      timer = setTimeout(() => share(view), pause);
    }),
    ViewPlugin.define(() => ({
      destroy: () => {
        clearTimeout(timer);
        if (awareness.getLocalState()?.caret) awareness.setLocalStateField("caret", null);
      },
    })),
  ];
}

class Others {
  shown: DecorationSet;
  private seen = "";

  constructor(
    private readonly view: EditorView,
    private readonly awareness: Awareness,
    private readonly text: Y.Text,
  ) {
    this.shown = this.look();
    awareness.on("change", this.changed);
  }

  /** People move their pointers all the time; only who moved in a text is looked at again. */
  private changed = (): void => {
    const now = JSON.stringify([...this.awareness.getStates()].map(([client, state]) => [client, state.caret ?? null]));
    if (now === this.seen) return;
    this.seen = now;
    this.view.dispatch({ effects: moved.of(null) });
  };

  update(update: ViewUpdate): void {
    const told = update.transactions.some((each) => each.effects.some((effect) => effect.is(moved)));
    // What is typed here reaches the shared text a moment later; until then carets move along.
    if (told || update.transactions.some((each) => each.annotation(Shared))) this.shown = this.look();
    else if (update.docChanged) this.shown = this.shown.map(update.changes);
  }

  destroy(): void {
    this.awareness.off("change", this.changed);
  }

  private look(): DecorationSet {
    const marks: Range<Decoration>[] = [];
    for (const [client, state] of this.awareness.getStates()) {
      const caret = client === this.awareness.clientID ? null : caretOf(state.caret, this.text);
      if (!caret) continue;
      const person = personOf(client, state.user);
      const [from, to] = [Math.min(caret.anchor, caret.head), Math.max(caret.anchor, caret.head)];
      if (from < to) {
        const attributes = { style: `--color: ${person.color}` };
        marks.push(Decoration.mark({ class: "cm-other-words", attributes }).range(from, to));
      }
      marks.push(Decoration.widget({ widget: new Caret(person), side: 1 }).range(caret.head));
    }
    return Decoration.set(marks, true);
  }
}

class Caret extends WidgetType {
  constructor(private readonly person: Person) {
    super();
  }

  toDOM(): HTMLElement {
    const caret = document.createElement("span");
    caret.className = "cm-other";
    caret.style.setProperty("--color", this.person.color);
    const name = document.createElement("span");
    name.textContent = this.person.name;
    caret.append(name);
    return caret;
  }
}
