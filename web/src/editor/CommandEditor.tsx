import { defaultKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { perl } from "@codemirror/legacy-modes/mode/perl";
import { python } from "@codemirror/legacy-modes/mode/python";
import { r } from "@codemirror/legacy-modes/mode/r";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import type * as Y from "yjs";
import { carets, Shared } from "./carets.ts";
import { highlight, tabThrough } from "./codeStyle.ts";
import { useEditor } from "./context.ts";
import type { Document } from "./document.ts";
import { LOCAL } from "./graph.ts";

const modes = [
  { fits: /^python/, mode: python },
  { fits: /^R/, mode: r },
  { fits: /^perl/, mode: perl },
  { fits: /./, mode: shell },
];

/** CommandEditor edits a shared text: what others type appears, undo takes back one's own. */
export default function CommandEditor({
  text,
  document,
  language,
}: {
  text: Y.Text | null;
  document: Document;
  language: string;
}) {
  const { session } = useEditor();
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const mode = useRef(new Compartment());
  useEffect(() => {
    const parent = place.current;
    if (!parent || !text) return;
    const made = new EditorView({
      parent,
      state: EditorState.create({
        doc: text.toString(),
        extensions: [
          EditorState.lineSeparator.of("\n"), // so that places are the same in the text and here
          lineNumbers(),
          drawSelection(),
          highlightActiveLine(),
          indentOnInput(),
          bracketMatching(),
          indentUnit.of("  "),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "Command", spellcheck: "false", tabindex: "0" }),
          EditorState.readOnly.of(!document.editable),
          mode.current.of([]),
          syntaxHighlighting(highlight),
          keymap.of([
            { key: "Mod-z", run: () => document.editable && document.undo.undo() !== null },
            { key: "Mod-Shift-z", run: () => document.editable && document.undo.redo() !== null },
            { key: "Mod-y", run: () => document.editable && document.undo.redo() !== null },
            // Escape gives Tab back to the page, so that the keyboard is not trapped.
            {
              key: "Escape",
              run: (editor) => {
                editor.contentDOM.blur();
                return true;
              },
            },
            ...searchKeymap,
            ...defaultKeymap,
            indentWithTab,
          ]),
          tabThrough,
          session.awareness ? carets(session.awareness, text) : [],
          EditorView.updateListener.of((update) => {
            if (!update.docChanged || update.transactions.some((each) => each.annotation(Shared))) return;
            document.edit(() => {
              let shift = 0;
              update.changes.iterChanges((from, to, _from, _to, inserted) => {
                if (to > from) text.delete(from + shift, to - from);
                if (inserted.length > 0) text.insert(from + shift, inserted.toString());
                shift += inserted.length - (to - from);
              });
            });
          }),
        ],
      }),
    });
    view.current = made;
    const follow = (event: Y.YTextEvent, transaction: Y.Transaction) => {
      // One's own typing is in the view already.
      if (transaction.origin === LOCAL && made.state.doc.toString() === text.toString()) return;
      const changes = [];
      let at = 0;
      for (const part of event.delta) {
        if (part.retain !== undefined) at += part.retain;
        else if (part.delete !== undefined) {
          changes.push({ from: at, to: at + part.delete, insert: "" });
          at += part.delete;
        } else if (typeof part.insert === "string") changes.push({ from: at, to: at, insert: part.insert });
      }
      made.dispatch({ changes, annotations: [Shared.of(true)] });
    };
    text.observe(follow);
    return () => {
      text.unobserve(follow);
      made.destroy();
      view.current = null;
    };
  }, [text, document, session]);
  useEffect(() => {
    const found = modes.find(({ fits }) => fits.test(language))?.mode ?? shell;
    view.current?.dispatch({ effects: mode.current.reconfigure(StreamLanguage.define(found)) });
  }, [language]);
  return <div ref={place} className="h-full" />;
}
