import { expect, test, vi } from "vitest";
import monteCarlo from "../../../examples/monte-carlo/workflow.json";
import { ApiFailure } from "../api/failure.ts";
import type { Definition } from "../workflows/queries.ts";
import { Document } from "./document.ts";
import { draw } from "./graph.ts";
import { Session } from "./session.ts";
import { GraphStore } from "./store.ts";

const definition = monteCarlo.definition as unknown as Definition;
const [first, second] = (definition.nodes ?? []).map((node) => node.id) as [string, string];

test("a change renders one node: all others stay the objects they are", () => {
  const document = new Document();
  document.editable = true;
  draw(document.doc, definition, "server");
  const store = new GraphStore(document);
  const before = new Map(store.now().nodes.map((node) => [node.id, node]));
  document.setField(first, "name", "Renamed");
  const after = store.now().nodes;
  expect(after.filter((node) => node !== before.get(node.id)).map((node) => node.id)).toEqual([first]);
  expect(store.now().edges).toHaveLength(definition.edges?.length ?? 0);
});

test("selection survives edits, and others' drags pass", () => {
  const document = new Document();
  document.editable = true;
  draw(document.doc, definition, "server");
  const store = new GraphStore(document);
  store.select([first]);
  document.setField(first, "name", "Renamed");
  expect(store.selected().nodes).toEqual([first]);
  store.drags(new Map([[second, { x: -5, y: -6 }]]));
  expect(store.now().nodes.find((node) => node.id === second)?.position).toEqual({ x: -5, y: -6 });
  store.drags(new Map());
  const { position } = (definition.nodes ?? []).find((node) => node.id === second) ?? {};
  expect(store.now().nodes.find((node) => node.id === second)?.position).toEqual(position);
  document.remove([first], []);
  expect(store.now().nodes.some((node) => node.id === first)).toBe(false);
  expect(store.now().edges.some((edge) => edge.source === first || edge.target === first)).toBe(false);
});

function alone(save: (definition: Definition, tag: string | null) => Promise<string | null>, mayEdit = true) {
  return new Session({
    mayEdit,
    user: { name: "Ada" },
    place: "ada wf",
    pass: () => Promise.reject(new ApiFailure(404, "not_found", "no rooms here")),
    load: async () => ({ definition, tag: "one" }),
    save,
  });
}

test("without a room, changes are saved by requests, each on top of the last", async () => {
  const saves: [string | undefined, string | null][] = [];
  const session = alone(async (sent, tag) => {
    saves.push([sent.nodes?.find((node) => node.id === first)?.name, tag]);
    return `tag ${saves.length}`;
  });
  await vi.waitFor(() => expect(session.state.getState().ready).toBe(true));
  session.document.setField(first, "name", "Once");
  expect(session.state.getState().save).toBe("saving");
  await session.flush();
  expect(session.state.getState().save).toBe("saved");
  session.document.setField(first, "name", "Twice");
  await session.flush();
  expect(saves).toEqual([
    ["Once", "one"],
    ["Twice", "tag 1"],
  ]);
  session.destroy();
});

test("somebody else's save is not overwritten unasked", async () => {
  let refuse = true;
  const session = alone(async (_sent, tag) => {
    if (refuse && tag !== null) throw new ApiFailure(412, "stale", "changed by another");
    return "two";
  });
  await vi.waitFor(() => expect(session.state.getState().ready).toBe(true));
  session.document.setField(first, "name", "Mine");
  await session.flush();
  expect(session.state.getState().save).toBe("conflict");
  await session.overwrite();
  expect(session.state.getState().save).toBe("saved");
  refuse = false;
  session.destroy();
});

test("a viewer's session saves nothing", async () => {
  const save = vi.fn(async () => "x");
  const session = alone(save, false);
  await vi.waitFor(() => expect(session.state.getState().ready).toBe(true));
  session.document.setField(first, "name", "No");
  await session.flush();
  expect(session.state.getState().canEdit).toBe(false);
  expect(save).not.toHaveBeenCalled();
  session.destroy();
});
