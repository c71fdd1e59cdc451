import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { foldGutter, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { yaml } from "@codemirror/legacy-modes/mode/yaml";
import { searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { useMutation } from "@tanstack/react-query";
import { Download, Upload } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api, ask, type Schemas } from "../api/client.ts";
import { isFailure, sentence } from "../api/failure.ts";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { save } from "../ui/download.ts";
import { Choice } from "../ui/Field.tsx";
import { Notice } from "../ui/Notice.tsx";
import { toast } from "../ui/toast.ts";
import { highlight, tabThrough } from "./codeStyle.ts";
import { useEditor, useGraph, useSession } from "./context.ts";
import { type Format, read, write } from "./source.ts";

/** SourcePanel is the definition as text: to read, edit, copy, import and export. */
export default function SourcePanel({ name, asks }: { name: string; asks: boolean }) {
  const graph = useGraph();
  const { lock } = useEditor();
  const locked = !useSession((state) => state.canEdit) || lock !== null;
  const [format, setFormat] = useState<Format>("yaml");
  const [draft, setDraft] = useState<string | null>(null);
  const [current, setCurrent] = useState(() => write(graph.document.definition(), format));
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const look = () => setCurrent(write(graph.document.definition(), format));
    look();
    graph.document.doc.on("update", look);
    return () => graph.document.doc.off("update", look);
  }, [graph, format]);
  const apply = useMutation({
    mutationFn: async (text: string) => {
      const definition = read(text);
      if (asks) {
        // What could not be saved is not drawn.
        const body = { definition: definition as unknown as Schemas["ValidateRequest"]["definition"] };
        await ask(api.POST("/api/workflows/validate", { body }));
      }
      graph.document.replace(definition);
    },
    onSuccess: () => {
      setDraft(null);
      toast.ok("Applied to the canvas. Undo reverts it in one step.");
    },
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
            setDraft(null);
            setFormat(next);
          }}
        />
        <Copy text={draft ?? current} label="Copy" />
        <Button
          size="sm"
          icon={<Download className="size-4" aria-hidden />}
          onClick={() => {
            const text =
              format === "json"
                ? `${JSON.stringify({ name, definition: graph.document.definition() }, null, 2)}\n`
                : current;
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
            if (file) apply.mutate(await file.text());
          }}
        />
        {draft !== null && draft !== current && (
          <>
            <Button size="sm" look="primary" busy={apply.isPending} onClick={() => apply.mutate(draft)}>
              Apply
            </Button>
            <Button
              size="sm"
              onClick={() => {
                setDraft(null);
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
                <code>{each.path}</code> {each.message}
              </p>
            ))
          ) : (
            <p>{sentence(apply.error)}</p>
          )}
        </Notice>
      )}
      <div className="min-h-0 flex-1 overflow-hidden rounded-lg border border-field-line">
        <TextArea value={draft ?? current} onChange={setDraft} readOnly={locked} />
      </div>
    </div>
  );
}

function TextArea({
  value,
  onChange,
  readOnly,
}: {
  value: string;
  onChange: (text: string) => void;
  readOnly: boolean;
}) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(onChange);
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
          EditorState.readOnly.of(readOnly),
          EditorView.contentAttributes.of({ "aria-label": "Definition", spellcheck: "false", tabindex: "0" }),
          tabThrough,
          keymap.of([...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
          EditorView.updateListener.of((update) => {
            if (
              update.docChanged &&
              update.transactions.some(
                (each) =>
                  each.isUserEvent("input") ||
                  each.isUserEvent("delete") ||
                  each.isUserEvent("undo") ||
                  each.isUserEvent("redo"),
              )
            )
              latest.current(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, [readOnly]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new view needs its text too
  useEffect(() => {
    const made = view.current;
    if (made && made.state.doc.toString() !== value)
      made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: value } });
  }, [value, readOnly]);
  return <div ref={place} className="h-full" />;
}
