import { autocompletion, type CompletionContext, completionKeymap, completionStatus } from "@codemirror/autocomplete";
import { defaultKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { perl } from "@codemirror/legacy-modes/mode/perl";
import { python } from "@codemirror/legacy-modes/mode/python";
import { r } from "@codemirror/legacy-modes/mode/r";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension, Prec } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
  runScopeHandlers,
} from "@codemirror/view";
import { useEffect, useRef } from "react";
import { yCollab } from "y-codemirror.next";
import type * as Y from "yjs";
import { commandVariables } from "../definition/completion.ts";
import { highlight, tabThrough } from "./codeStyle.ts";
import { useEditor, useGraph } from "./context.ts";
import type { Document } from "./document/document.ts";
import { useMark } from "./Marked.tsx";
import { TextPresence } from "./textPresence.ts";

const modes = [
  { fits: /^python/, mode: python },
  { fits: /^R/, mode: r },
  { fits: /^perl/, mode: perl },
  { fits: /./, mode: shell },
];

interface CommandEditorProps {
  text: Y.Text | null;
  stepKey: string;
  language: string;
  locked: boolean;
}

/** CommandEditor edits a shared text: what others type appears, and undo takes back one's own edits. */
export default function CommandEditor({ text, stepKey, language, locked }: CommandEditorProps) {
  const { session } = useEditor();
  const { document } = useGraph();
  const mark = useMark();
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const parts = useRef({ mode: new Compartment(), rest: new Compartment() });
  useEffect(() => {
    const parent = place.current;
    if (!parent || !text) return;
    const presence = session.awareness && new TextPresence(session.awareness, text);
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
          parts.current.mode.of([]),
          parts.current.rest.of([]),
          syntaxHighlighting(highlight),
          leaveByTab,
          autocompletion({ override: [variables(document, stepKey)], icons: false }),
          keys(document),
          tabThrough,
          yCollab(text, presence, { undoManager: document.undo }),
          EditorView.domEventHandlers({ blur: () => presence?.leave() }),
        ],
      }),
    });
    view.current = made;
    const stop = escapeFirst(made);
    return () => {
      stop();
      presence?.leave();
      made.destroy();
      view.current = null;
    };
  }, [text, document, session, stepKey]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a view of another text needs it, too
  useEffect(() => {
    const found = modes.find(({ fits }) => fits.test(language))?.mode ?? shell;
    view.current?.dispatch({ effects: parts.current.mode.reconfigure(StreamLanguage.define(found)) });
  }, [language, text]);
  const { "aria-invalid": invalid, "aria-describedby": about } = mark;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a view of another text needs it, too
  useEffect(() => {
    const attributes = {
      "aria-label": "Command",
      spellcheck: "false",
      tabindex: "0",
      ...(invalid && { "aria-invalid": "true" }),
      ...(about && { "aria-describedby": about }),
    };
    const rest = [EditorState.readOnly.of(locked), EditorView.contentAttributes.of(attributes)];
    view.current?.dispatch({ effects: parts.current.rest.reconfigure(rest) });
  }, [locked, invalid, about, text]);
  return <div ref={place} className="h-full" />;
}

function keys(document: Document): Extension {
  return keymap.of([
    { key: "Mod-z", run: () => document.editable && document.undo.undo() !== null },
    { key: "Mod-Shift-z", run: () => document.editable && document.undo.redo() !== null },
    { key: "Mod-y", run: () => document.editable && document.undo.redo() !== null },
    ...completionKeymap,
    ...searchKeymap,
    ...defaultKeymap,
    indentWithTab,
  ]);
}

// After Escape, Tab goes on to the next field, unless Escape has closed suggestions. The
// keyboard stays here: what is typed next is text.
const leaveByTab = Prec.highest(
  keymap.of([
    {
      key: "Escape",
      run: (view) => {
        if (completionStatus(view.state) !== "active") view.setTabFocusMode(true);
        return false; // it also closes what is open
      },
    },
  ]),
);

/**
 * escapeFirst gives Escape to an editor before the dialog around it, which would close. The
 * dialog listens before the event gets to the editor, so the editor's keys are run even earlier.
 */
function escapeFirst(view: EditorView): () => void {
  const listen = (event: KeyboardEvent) => {
    const { target } = event;
    if (event.key !== "Escape" || !(target instanceof Node) || !view.dom.contains(target)) return;
    if (!view.dom.closest("[role=dialog]")) return;
    if (view.contentDOM.contains(target)) runScopeHandlers(view, event, "editor");
    event.preventDefault(); // it belongs to the editor, whatever it did there
  };
  addEventListener("keydown", listen, true);
  return () => removeEventListener("keydown", listen, true);
}

/** variables suggests what a command can read, once somebody has typed a part of it. */
function variables(document: Document, stepKey: string) {
  return (context: CompletionContext) => {
    const typed = context.matchBefore(/\$?\{?[A-Z_]\w*|\$\{?/);
    const node = document.node(stepKey);
    if (!typed || !node || (typed.text.length < 2 && !typed.text.startsWith("$") && !context.explicit)) return null;
    const prefix = /^\$?\{?/.exec(typed.text)?.[0] ?? "";
    return {
      from: typed.from + prefix.length,
      options: commandVariables(document.definition(), node).map(({ text, about }) => ({ label: text, detail: about })),
      validFor: /^\w*$/,
    };
  };
}
