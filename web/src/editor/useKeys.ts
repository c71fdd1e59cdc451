import { useReactFlow } from "@xyflow/react";
import { type RefObject, useEffect, useRef } from "react";
import { toast } from "../ui/toast.ts";
import { typing } from "../ui/typing.ts";
import { pieceText, readPiece } from "./clipboard.ts";
import type { GraphStore } from "./store.ts";

interface Keys {
  frame: RefObject<HTMLElement | null>;
  graph: GraphStore;
  canEdit: boolean;
  insert: () => void;
  find: () => void;
  middle: () => { x: number; y: number };
}

/** useKeys listens for the editor's shortcuts. What edits ends in the document, which refuses viewers. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  const flow = useReactFlow();
  useEffect(() => {
    // Keys belong to the canvas unless something is typed, or a dialog is open.
    const ours = (event: Event) => {
      const target = event.target as Element | null;
      return !typing(target) && !target?.closest("[role=dialog], [role=menu], .cm-editor");
    };
    const press = (event: KeyboardEvent) => {
      if (!ours(event) || event.altKey) return;
      const { graph, canEdit, insert, find } = latest.current;
      const { document } = graph;
      const command = event.ctrlKey || event.metaKey;
      const key = event.key.toLowerCase();
      const act = (work: () => void) => {
        event.preventDefault();
        work();
      };
      if (command && key === "f") return act(find);
      if (command && key === "a") return act(() => graph.select(graph.now().nodes.map((node) => node.id)));
      if (command && key === "0") return act(() => void flow.fitView({ maxZoom: 1, padding: 0.15 }));
      if (key === "escape" && graph.selected().nodes.length > 0) return graph.select([]);
      if (!canEdit) return;
      if (command && key === "z") return act(() => (event.shiftKey ? document.undo.redo() : document.undo.undo()));
      if (command && key === "y") return act(() => document.undo.redo());
      if (command && key === "d") {
        return act(() => {
          const { nodes } = graph.selected();
          if (nodes.length > 0) graph.select(document.paste(document.take(nodes)));
        });
      }
      if (command) return;
      if (key === "delete" || key === "backspace") {
        const { nodes, edges } = graph.selected();
        if (nodes.length + edges.length > 0) act(() => document.remove(nodes, edges));
      }
      if (key === "a") act(insert);
    };
    const copy = (event: ClipboardEvent) => {
      if (!ours(event) || getSelection()?.toString()) return;
      const { graph, canEdit } = latest.current;
      const { nodes } = graph.selected();
      if (nodes.length === 0 || !event.clipboardData) return;
      event.clipboardData.setData("text/plain", pieceText(graph.document.take(nodes)));
      event.preventDefault();
      if (event.type === "cut" && canEdit) graph.document.remove(nodes, []);
    };
    const paste = (event: ClipboardEvent) => {
      if (!ours(event)) return;
      const { graph, canEdit, middle } = latest.current;
      const piece = readPiece(event.clipboardData?.getData("text/plain") ?? "");
      if (!piece) return;
      event.preventDefault();
      if (canEdit) graph.select(graph.document.paste(piece, middle()));
      else toast.info("You have view-only access.");
    };
    addEventListener("keydown", press);
    addEventListener("copy", copy);
    addEventListener("cut", copy);
    addEventListener("paste", paste);
    return () => {
      removeEventListener("keydown", press);
      removeEventListener("copy", copy);
      removeEventListener("cut", copy);
      removeEventListener("paste", paste);
    };
  }, [flow]);
}
