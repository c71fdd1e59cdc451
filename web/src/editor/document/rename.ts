// Renaming something together with everything that refers to it.
import { type Definition, type Edit, valueAt } from "../../definition/model.ts";
import { type Name, type Reference, referencesTo, renamed } from "../../definition/references.ts";
import type { Document } from "./document.ts";

/** Leftover is what still says an old name after a rename. */
export interface Leftover {
  what: Name;
  to: string;
  /** Expressions that mention it: the server, which reads them, did not change them. */
  expressions: Reference[];
  /** Whether the server was asked. */
  asked: boolean;
}

/** scriptEdits lists the edits of commands and variables that mention a name. Nobody can tell for certain what a script means. */
export function scriptEdits(document: Document, what: Name, to: string): Edit[] {
  const references = referencesTo(document.definition(), what);
  return renamed(
    references.filter((each) => each.as === "script"),
    to,
  );
}

/** whyLeft says why expressions still have the old name. */
export function whyLeft({ asked }: Leftover, live: boolean): string {
  if (asked) return "These expressions have errors, or changed meanwhile. Change them yourself:";
  if (live) return "The server changes expressions, and it can't be reached. Change these yourself:";
  return "Expressions are changed automatically only with live editing, which is off. Change these yourself:";
}

/** AskEdits asks the server for the edits of ports, outputs and expressions; null: it cannot be asked. */
export type AskEdits = (what: Name, to: string) => Promise<Edit[] | null>;

/** rename gives something another name, as one step of undo. It returns what still says the old one, if anything does. */
export async function rename(document: Document, ask: AskEdits, what: Name, to: string): Promise<Leftover | null> {
  const before = valueAt(document.definition());
  // Expressions cannot name what a step takes, so there is nothing to ask.
  const answer = what.kind === "port" ? [] : await ask(what, to);
  const definition = document.definition();
  const references = referencesTo(definition, what);
  const as = (kind: Reference["as"]) => references.filter((each) => each.as === kind);
  const now = valueAt(definition);
  // Somebody may have changed an expression since the server read it.
  const answered = (answer ?? []).filter(({ path }) => before(path) === now(path));
  const names = renamed(
    // The live document connects steps by their keys.
    as("name").filter(({ path }) => what.kind !== "step" || !path.startsWith("edges.")),
    to,
  );
  const byPath = new Map([...names, ...answered].map((edit) => [edit.path, edit]));
  document.apply([...byPath.values(), ...declaration(definition, what, to)]);
  const expressions = as("expression").filter(({ path }) => !byPath.has(path));
  return expressions.length + as("script").length > 0 ? { what, to, expressions, asked: answer !== null } : null;
}

/** declaration lists the edits of the place where something has its name. */
function declaration(definition: Definition, what: Name, to: string): Edit[] {
  if (what.kind === "step") return [{ path: `nodes.${what.name}.id`, value: to }];
  const path = declaredIn(what);
  const value = valueAt(definition)(`${path}.${what.name}`);
  if (value === undefined) return []; // a port that only edges name
  return [
    { path: `${path}.${what.name}`, value: null },
    { path: `${path}.${to}`, value },
  ];
}

function declaredIn(what: Name): string {
  if (what.kind === "output") return `nodes.${what.node}.outputs`;
  if (what.kind === "port") return `nodes.${what.node}.inputs`;
  return what.kind === "input" ? "inputs" : "parameters";
}
