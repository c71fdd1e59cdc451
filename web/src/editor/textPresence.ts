// Who else is in a shared text, for y-codemirror.next. It expects carets in the field
// `cursor` of everybody's presence, where we have the pointer on the canvas, and trusts
// what others say: this gives it only carets that are in the text.
import type { Awareness } from "y-protocols/awareness";
import * as Y from "yjs";
import { isRecord } from "../api/failure.ts";
import { personOf } from "./presence.ts";

interface Caret {
  anchor: Y.RelativePosition;
  head: Y.RelativePosition;
}

interface State {
  user?: { name: string; color: string; colorLight: string };
  cursor: Caret | null;
}

type Listener = (changes: { added: number[]; updated: number[]; removed: number[] }) => void;

/** TextPresence is the part of an Awareness that y-codemirror.next uses. */
export class TextPresence {
  readonly doc: Y.Doc;
  private readonly listeners = new Map<Listener, () => void>();

  constructor(
    private readonly awareness: Awareness,
    private readonly text: Y.Text,
  ) {
    this.doc = awareness.doc;
  }

  getLocalState(): State | null {
    const state = this.awareness.getLocalState();
    return state && { cursor: (state.caret as Caret | undefined) ?? null };
  }

  setLocalStateField(_field: "cursor", caret: Caret | null): void {
    this.awareness.setLocalStateField("caret", caret && { anchor: json(caret.anchor), head: json(caret.head) });
  }

  /** leave tells others that this person is no longer in the text. */
  leave(): void {
    if (this.awareness.getLocalState()?.caret) this.awareness.setLocalStateField("caret", null);
  }

  getStates(): Map<number, State> {
    const states = new Map<number, State>();
    for (const [client, state] of this.awareness.getStates()) {
      const caret = client === this.doc.clientID ? null : caretOf(state.caret, this.text);
      if (!caret) continue;
      const { name, color } = personOf(client, state.user);
      // It becomes a background in a style attribute, on which colored words would be hard to read: a line is not.
      const colorLight = `transparent; border-bottom: 2px solid ${color}`;
      states.set(client, { user: { name, color, colorLight }, cursor: caret });
    }
    return states;
  }

  /** on calls a listener when somebody else's caret has changed. People move their pointers all the time. */
  on(_event: "change", listener: Listener): void {
    let seen = this.carets();
    const changed = () => {
      const now = this.carets();
      if (now === seen) return;
      seen = now;
      listener({ added: [], updated: [Number.NaN], removed: [] });
    };
    this.listeners.set(listener, changed);
    this.awareness.on("change", changed);
  }

  off(_event: "change", listener: Listener): void {
    const changed = this.listeners.get(listener);
    if (changed) this.awareness.off("change", changed);
    this.listeners.delete(listener);
  }

  private carets(): string {
    const others = [...this.awareness.getStates()].filter(([client]) => client !== this.doc.clientID);
    return JSON.stringify(others.map(([client, state]) => [client, state.caret ?? null]));
  }
}

const json = (position: Y.RelativePosition): unknown => Y.relativePositionToJSON(position);

/** caretOf reads where somebody says to be in a text; null when that is elsewhere, or no place at all. */
export function caretOf(said: unknown, text: Y.Text): Caret | null {
  if (!isRecord(said)) return null;
  const [anchor, head] = [placeIn(said.anchor, text), placeIn(said.head, text)];
  return anchor && head && { anchor, head };
}

function placeIn(said: unknown, text: Y.Text): Y.RelativePosition | null {
  try {
    const position = Y.createRelativePositionFromJSON(said);
    const place = text.doc && Y.createAbsolutePositionFromRelativePosition(position, text.doc);
    return place?.type === text ? position : null;
  } catch {
    return null; // others can say anything
  }
}
