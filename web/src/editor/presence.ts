// Who else is in the editor: where they point, and which steps they have selected or
// drag. Each part changes on its own, so that a moving cursor renders only a cursor.
import type { Awareness } from "y-protocols/awareness";
import { createStore } from "zustand/vanilla";
import { isRecord } from "../api/failure.ts";
import { readable } from "../ui/color.ts";

export interface Person {
  client: number;
  id: string;
  name: string;
  color: string;
  role: string;
}

type Point = { x: number; y: number };

export interface PresenceState {
  people: Person[];
  cursors: Map<number, Point>;
  /** Who has selected a step, by its key. */
  chosen: Map<string, Person[]>;
}

export const newPresence = () =>
  createStore<PresenceState>(() => ({ people: [], cursors: new Map(), chosen: new Map() }));

export type Presence = ReturnType<typeof newPresence>;

/** watchPresence reads what others say of themselves, whatever shape that has. */
export function watchPresence(
  awareness: Awareness,
  presence: Presence,
  onDrags: (drags: Map<string, Point>) => void,
): () => void {
  const seen = { people: "", chosen: "" };
  const read = () => {
    const people: Person[] = [];
    const cursors = new Map<number, Point>();
    const chosen = new Map<string, Person[]>();
    const drags = new Map<string, Point>();
    for (const [client, state] of awareness.getStates()) {
      if (client === awareness.clientID || !isRecord(state)) continue;
      const person = personOf(client, state.user);
      people.push(person);
      const cursor = pointOf(state.cursor);
      if (cursor) cursors.set(client, cursor);
      for (const id of Array.isArray(state.sel) ? state.sel : [])
        if (typeof id === "string") chosen.set(id, [...(chosen.get(id) ?? []), person]);
      for (const [id, at] of Object.entries(isRecord(state.drag) ? state.drag : {})) {
        if (Array.isArray(at) && typeof at[0] === "number" && typeof at[1] === "number")
          drags.set(id, { x: at[0], y: at[1] });
      }
    }
    people.sort((a, b) => a.client - b.client);
    const keys = { people: JSON.stringify(people), chosen: JSON.stringify([...chosen]) };
    presence.setState({
      cursors,
      ...(keys.people !== seen.people && { people }),
      ...(keys.chosen !== seen.chosen && { chosen }),
    });
    Object.assign(seen, keys);
    onDrags(drags);
  };
  awareness.on("change", read);
  read();
  return () => awareness.off("change", read);
}

/** personOf reads who somebody says to be. */
export function personOf(client: number, user: unknown): Person {
  const said = isRecord(user) ? user : {};
  const text = (value: unknown, other: string) => (typeof value === "string" && value !== "" ? value : other);
  const color = text(said.color, "");
  return {
    client,
    id: text(said.id, String(client)),
    name: text(said.name, "Someone"),
    color: readable(/^#[0-9a-f]{6}$/i.test(color) ? color : (colors[client % colors.length] as string)),
    role: text(said.role, "editor"),
  };
}

function pointOf(value: unknown): Point | null {
  return isRecord(value) && typeof value.x === "number" && typeof value.y === "number"
    ? { x: value.x, y: value.y }
    : null;
}

const colors = ["#0b6e6e", "#8a5a00", "#1d5fa8", "#7a3e9d", "#b3261e", "#1b7f4b"];
