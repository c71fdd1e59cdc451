// The definition as text that somebody edits. A draft remembers what it began from, so
// that applying it changes only what its author changed, whatever others did meanwhile.
import { createStore } from "zustand/vanilla";
import { type Keyed, keyed, renamedIds } from "../definition/merge.ts";
import type { Definition, GraphNode } from "../definition/model.ts";
import { newId } from "../definition/names.ts";
import { alignKeys, type Document } from "./document/document.ts";
import type { Format } from "./source.ts";

export interface CodeDraft {
  format: Format;
  text: string;
  /** The text that it began from, the definition that this was, and the document that said so. */
  began: string;
  base: Keyed;
  document: Document;
}

/** newCodeDraft makes the store of a draft. It outlives the panel, so that looking at a step loses nothing. */
export const newCodeDraft = () => createStore<{ draft: CodeDraft | null }>(() => ({ draft: null }));

/** Drafting is the part of a session that code is applied to. */
interface Drafting {
  /** The document changes when it starts afresh. */
  readonly document: Document;
  readonly code: ReturnType<typeof newCodeDraft>;
}

/**
 * applyChecked makes a session's document say a definition once check has passed. With a draft it makes only the
 * draft's changes, and forgets it. It returns the steps that stay because others changed them, and fails where the
 * document cannot be edited by then.
 */
export async function applyChecked(
  session: Drafting,
  definition: Definition,
  draft: CodeDraft | null,
  check: () => Promise<void>,
): Promise<GraphNode[]> {
  await check();
  const { document } = session;
  if (!document.editable)
    throw new Error("The workflow can't be edited at the moment, so nothing was applied. Try again when it can.");
  if (!draft) {
    document.replace(definition);
    return [];
  }
  const kept = applyCode(document, draft, definition);
  session.code.setState({ draft: null });
  return kept;
}

/** applyCode makes the changes of a draft in a document. It returns the steps that stay because others changed them. */
export function applyCode(document: Document, draft: CodeDraft, mine: Definition): GraphNode[] {
  const base = draft.document === document ? draft.base : alignKeys(draft.base, draft.base, document);
  const before: Definition = { version: 1, nodes: [...base.nodes.values()] };
  const keys = new Map([...base.nodes].map(([key, node]) => [node.id, key]));
  const renames = renamedIds(before, mine);
  const keyOf = (id: string): string => {
    const known = keys.get(renames.get(id) ?? id);
    if (known !== undefined) return known;
    const key = document.roots.nodes.has(id) ? newId("n") : id;
    keys.set(id, key);
    return key;
  };
  return document.mergeIn(base, keyed(mine, keyOf));
}
