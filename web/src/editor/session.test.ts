import { expect, test, vi } from "vitest";
import monteCarlo from "../../../examples/monte-carlo/workflow.json";
import { ApiFailure } from "../api/failure.ts";
import type { Definition } from "../definition/model.ts";
import { Document } from "./document/document.ts";
import { GraphStore } from "./document/store.ts";
import { writeDefinition } from "./document/ydoc.ts";
import { Session } from "./session.ts";

const definition = monteCarlo.definition as unknown as Definition;
const [first, second] = (definition.nodes ?? []).map((node) => node.id) as [string, string];

test("a change renders one node: all others stay the objects they are", () => {
  const document = new Document();
  document.editable = true;
  writeDefinition(document.doc, definition, "server");
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
  writeDefinition(document.doc, definition, "server");
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
  await expect.poll(() => session.state.getState().ready).toBe(true);
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
  await expect.poll(() => session.state.getState().ready).toBe(true);
  session.document.setField(first, "name", "Mine");
  await expect(session.flush()).rejects.toThrow("Someone else saved");
  expect(session.state.getState().save).toBe("conflict");
  await session.overwrite();
  expect(session.state.getState().save).toBe("saved");
  refuse = false;
  session.destroy();
});

test("a viewer's session saves nothing", async () => {
  const save = vi.fn(async () => "x");
  const session = alone(save, false);
  await expect.poll(() => session.state.getState().ready).toBe(true);
  session.document.setField(first, "name", "No");
  await session.flush();
  expect(session.state.getState().canEdit).toBe(false);
  expect(save).not.toHaveBeenCalled();
  session.destroy();
});

test("saving goes on after a network error", async () => {
  vi.useFakeTimers();
  let online = true;
  const saved: (string | undefined)[] = [];
  const session = alone(async (sent) => {
    if (!online) throw new TypeError("Failed to fetch");
    saved.push(sent.nodes?.find((node) => node.id === first)?.name);
    return "tag";
  });
  await vi.waitFor(() => expect(session.state.getState().ready).toBe(true), 20_000);
  online = false;
  session.document.setField(first, "name", "Offline");
  await vi.advanceTimersByTimeAsync(2000);
  expect(session.state.getState().save).toBe("offline");
  await expect(session.flush()).rejects.toThrow("can't be reached");
  online = true;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(saved).toEqual(["Offline"]);
  session.document.setField(first, "name", "Again");
  await vi.advanceTimersByTimeAsync(2000);
  expect(saved).toEqual(["Offline", "Again"]);
  session.destroy();
  vi.useRealTimers();
});

test("asking for everything to be saved while the workflow loads does not stop it from loading", async () => {
  vi.useFakeTimers();
  let online = false;
  const session = new Session({
    mayEdit: true,
    user: { name: "Ada" },
    place: "ada wf",
    pass: () => Promise.reject(new ApiFailure(404, "not_found", "no rooms here")),
    load: async () => {
      if (!online) throw new TypeError("Failed to fetch");
      return { definition, tag: "one" };
    },
    save: async () => "two",
  });
  await vi.advanceTimersByTimeAsync(100);
  await session.flush().catch(() => null);
  online = true;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(session.state.getState().ready).toBe(true);
  session.destroy();
  vi.useRealTimers();
});

test("a lock keeps people from editing for as long as it is there", async () => {
  const session = alone(async () => "x");
  session.setLock("View only on small screens.");
  await expect.poll(() => session.state.getState().ready).toBe(true);
  session.document.setField(first, "name", "No");
  expect(session.document.node(first)?.name).not.toBe("No");
  session.setLock(null);
  session.document.setField(first, "name", "Yes");
  expect(session.document.node(first)?.name).toBe("Yes");
  session.destroy();
});
