import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { foldGutter, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { yaml } from "@codemirror/legacy-modes/mode/yaml";
import { searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, Transaction } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Download, Upload } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useStore } from "zustand";
import { ask, type Schemas } from "../api/client.ts";
import { isFailure, sentence } from "../api/failure.ts";
import { useApi } from "../api/team.ts";
import type { Definition } from "../definition/model.ts";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { save } from "../ui/download.ts";
import { Choice } from "../ui/Field.tsx";
import { Notice } from "../ui/Notice.tsx";
import { toast } from "../ui/toast.ts";
import { workflowQuery } from "../workflows/queries.ts";
import { applyChecked, type CodeDraft } from "./codeDraft.ts";
import { highlight, tabThrough } from "./codeStyle.ts";
import { useCanEdit, useEditor, useGraph } from "./context.ts";
import type { Document } from "./document/document.ts";
import { type Format, read, write, writeFile } from "./source.ts";

const validateTimeout = 10_000;

/** Shown is a text with what it began from. */
type Shown = Omit<CodeDraft, "format">;

function textOf(document: Document, format: Format): Shown {
  const text = write(document.definition(), format);
  return { text, began: text, base: document.keyed(), document };
}

/** SourcePanel shows the definition as text, to read, edit, copy, import and export. */
export default function SourcePanel({ name, workflowId }: { name: string; workflowId: string | null }) {
  const api = useApi();
  const client = useQueryClient();
  const { document } = useGraph();
  const { session } = useEditor();
  const { code } = session;
  const locked = !useCanEdit();
  const draft = useStore(code, (state) => state.draft);
  const [format, setFormat] = useState<Format>(draft?.format ?? "yaml");
  const [current, setCurrent] = useState(() => textOf(document, format));
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const look = () => setCurrent(textOf(document, format));
    look();
    document.doc.on("update", look);
    return () => document.doc.off("update", look);
  }, [document, format]);
  // What could not be saved is not applied. Offline there is nobody to ask, and the room takes it
  // later; a lost connection may be as silent as a slow server.
  const validate = async (definition: Definition) => {
    const body = { definition: definition as unknown as Schemas["ValidateRequest"]["definition"] };
    try {
      await ask(api.POST("/api/workflows/validate", { body, signal: AbortSignal.timeout(validateTimeout) }));
    } catch (error) {
      if (!isFailure(error) || error.status !== 0) throw error;
    }
  };
  const apply = useMutation({
    mutationFn: async ({ text, changes }: { text: string; changes: CodeDraft | null }) => {
      const definition = read(text);
      return applyChecked(session, definition, changes, async () => {
        if (workflowId) await validate(definition);
      });
    },
    onSuccess: (kept) => {
      const names = kept.map((node) => `“${node.name || node.id}”`).join(", ");
      toast.ok("Applied to the canvas. Undo reverts it in one step.", {
        ...(kept.length > 0 && { description: `Someone else changed ${names} meanwhile, so it stays.` }),
      });
    },
    networkMode: "always",
    meta: { shown: true },
  });
  const details = isFailure(apply.error) ? apply.error.details : [];
  return (
    <div className="flex h-full min-h-96 flex-col gap-2">
      <div className="flex flex-wrap items-center gap-1.5">
        <Choice
          aria-label="Format"
          className="h-8! w-auto!"
          options={{ yaml: "YAML", json: "JSON" }}
          value={format}
          onChange={(next) => {
            try {
              const converted = (text: string) => write(read(text), next);
              if (draft)
                code.setState({
                  draft: { ...draft, format: next, text: converted(draft.text), began: converted(draft.began) },
                });
              setFormat(next);
            } catch (error) {
              toast.error("The text can't be converted", { description: sentence(error) });
            }
          }}
        />
        <Copy text={draft?.text ?? current.text} label="Copy" />
        <Button
          size="sm"
          icon={<Download className="size-4" aria-hidden />}
          onClick={() => {
            const license = workflowId ? client.getQueryData(workflowQuery(workflowId).queryKey)?.license : "";
            const text = writeFile({ name, ...(license && { license }) }, document.definition(), format);
            save(`${name}.workflow.${format}`, text, format === "json" ? "application/json" : "application/yaml");
          }}
        >
          Export
        </Button>
        <Button
          size="sm"
          icon={<Upload className="size-4" aria-hidden />}
          disabled={locked}
          onClick={() => input.current?.click()}
        >
          Import
        </Button>
        <input
          ref={input}
          type="file"
          hidden
          accept=".json,.yaml,.yml"
          onChange={async (event) => {
            const file = event.target.files?.[0];
            event.target.value = "";
            if (file) apply.mutate({ text: await file.text(), changes: null });
          }}
        />
        {draft && draft.text !== current.text && (
          <>
            <Button
              size="sm"
              look="primary"
              busy={apply.isPending}
              disabled={locked}
              onClick={() => apply.mutate({ text: draft.text, changes: draft })}
            >
              Apply
            </Button>
            <Button
              size="sm"
              onClick={() => {
                code.setState({ draft: null });
                apply.reset();
              }}
            >
              Discard
            </Button>
          </>
        )}
      </div>
      {apply.error && (
        <Notice tone="danger" title="Couldn't apply this definition">
          {details.length > 0 ? (
            details.map((each) => (
              <p key={each.path + each.message}>
                {sentence(each.message)} {each.field && !each.edge && <code className="text-muted">{each.field}</code>}
              </p>
            ))
          ) : (
            <p>{sentence(apply.error)}</p>
          )}
        </Notice>
      )}
      <div className="min-h-0 flex-1 overflow-hidden rounded-lg border border-field-line">
        <CodeArea
          shown={draft ?? current}
          onChange={(text, from) => code.setState({ draft: text === from.began ? null : { ...from, format, text } })}
          readOnly={locked || apply.isPending}
        />
      </div>
    </div>
  );
}

interface CodeAreaProps {
  shown: Shown;
  /** onChange gets what somebody typed, and the text that they typed into. */
  onChange: (text: string, from: Shown) => void;
  readOnly: boolean;
}

function CodeArea({ shown, onChange, readOnly }: CodeAreaProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const lock = useRef(new Compartment());
  const latest = useRef(onChange);
  // What the view shows, which is a moment behind what the document says.
  const from = useRef(shown);
  useEffect(() => {
    latest.current = onChange;
  });
  useEffect(() => {
    if (!place.current) return;
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({
        extensions: [
          lineNumbers(),
          foldGutter(),
          history(),
          StreamLanguage.define(yaml),
          syntaxHighlighting(highlight),
          lock.current.of([]),
          EditorView.contentAttributes.of({ "aria-label": "Definition", spellcheck: "false", tabindex: "0" }),
          tabThrough,
          keymap.of([...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
          EditorView.updateListener.of((update) => {
            const typed = update.transactions.some((each) => each.annotation(Transaction.userEvent) !== undefined);
            if (update.docChanged && typed) latest.current(update.state.doc.toString(), from.current);
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => {
    view.current?.dispatch({ effects: lock.current.reconfigure(EditorState.readOnly.of(readOnly)) });
  }, [readOnly]);
  useEffect(() => {
    from.current = shown;
    const made = view.current;
    if (made && made.state.doc.toString() !== shown.text)
      made.dispatch({
        changes: { from: 0, to: made.state.doc.length, insert: shown.text },
        annotations: Transaction.addToHistory.of(false),
      });
  }, [shown]);
  return <div ref={place} className="h-full" />;
}
