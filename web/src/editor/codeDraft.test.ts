import { expect, test } from "vitest";
import type { Definition, GraphNode } from "../definition/model.ts";
import { applyChecked, applyCode, type CodeDraft, newCodeDraft } from "./codeDraft.ts";
import { Document } from "./document/document.ts";
import { writeDefinition } from "./document/ydoc.ts";
import { write } from "./source.ts";

const step = (id: string, more: object = {}) => ({ id, type: "task", command: `${id}\n`, ...more }) as GraphNode;
const base = { version: 1, nodes: [step("a"), step("b"), step("c")] } as Definition;

function begun(): { document: Document; draft: CodeDraft } {
  const document = new Document();
  writeDefinition(document.doc, base, "server");
  document.editable = true;
  const text = write(document.definition(), "yaml");
  return { document, draft: { format: "yaml", text, began: text, base: document.keyed(), document } };
}

const commandOf = (document: Document, id: string) => document.node(document.keyOf(id) ?? "")?.command;

test("what others changed since a draft began is kept when it is applied", () => {
  const { document, draft } = begun();
  document.text("a", "command")?.insert(2, "theirs\n");
  document.addNode(step("added"));
  const mine = { ...base, nodes: [step("a", { command: "mine\na\n", name: "Mine" }), step("b")] } as Definition;
  expect(applyCode(document, draft, mine)).toEqual([]);
  expect(commandOf(document, "a")).toBe("mine\na\ntheirs\n");
  expect(document.definition().nodes?.map(({ id }) => id)).toEqual(["a", "added", "b"]);
  document.undo.undo();
  expect(document.definition().nodes?.map(({ id }) => id)).toEqual(["a", "added", "b", "c"]);
  expect(commandOf(document, "a")).toBe("a\ntheirs\n");
});

test("a step that others typed in stays, and is named", () => {
  const { document, draft } = begun();
  document.text("c", "command")?.insert(2, "theirs\n");
  const kept = applyCode(document, draft, { ...base, nodes: [step("a"), step("b")] } as Definition);
  expect(kept.map(({ id }) => id)).toEqual(["c"]);
  expect(commandOf(document, "c")).toBe("c\ntheirs\n");
});

test("a step whose id a draft changes is the same step for whoever types in it", () => {
  const { document, draft } = begun();
  document.text("c", "command")?.insert(2, "theirs\n");
  applyCode(document, draft, { ...base, nodes: [step("a"), step("b"), { ...step("c"), id: "clean" }] } as Definition);
  expect(commandOf(document, "clean")).toBe("c\ntheirs\n");
  expect(document.keyOf("clean")).toBe("c");
});

test("a draft is applied to a document that has started afresh", () => {
  const { draft } = begun();
  const { document } = begun();
  document.text("b", "command")?.insert(2, "theirs\n");
  applyCode(document, draft, { ...base, nodes: [step("a"), step("b", { name: "Mine" }), step("c")] } as Definition);
  expect(document.node("b")).toMatchObject({ name: "Mine", command: "b\ntheirs\n" });
});

const changes = { ...base, nodes: [step("a", { name: "Mine" }), step("b"), step("c")] } as Definition;

test("code is applied to the document that started afresh while it was checked", async () => {
  const { document, draft } = begun();
  const session = { document, code: newCodeDraft() };
  session.code.setState({ draft });
  const fresh = begun().document;
  await applyChecked(session, changes, draft, async () => {
    document.destroy();
    session.document = fresh;
  });
  expect(fresh.node("a")?.name).toBe("Mine");
  expect(session.code.getState().draft).toBeNull();
});

test.each(["a draft", "an import"])(
  "%s fails, and nothing is lost, if editing ends while it is checked",
  async (what) => {
    const { document, draft } = begun();
    const session = { document, code: newCodeDraft() };
    session.code.setState({ draft });
    const applied = applyChecked(session, changes, what === "a draft" ? draft : null, async () => {
      document.editable = false;
    });
    await expect(applied).rejects.toThrow("nothing was applied");
    expect(document.node("a")?.name).toBeUndefined();
    expect(session.code.getState().draft).toBe(draft);
  },
);
