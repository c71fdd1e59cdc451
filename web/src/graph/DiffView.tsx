import type { Definition } from "../definition/model.ts";
import { differences, sameLayout, sorted } from "./diff.ts";
import { LineDiff } from "./LineDiff.tsx";

const words = { added: "Added", removed: "Removed", changed: "Changed" };

/** DiffView shows what changed between two definitions. */
export function DiffView({ before, after }: { before: Definition; after: Definition }) {
  const list = differences(before, after);
  if (list.length === 0)
    return (
      <p className="text-sm text-muted">{sameLayout(before, after) ? "No changes." : "Only the layout changed."}</p>
    );
  const part = (definition: Definition, id: string): unknown => {
    const node = definition.nodes?.find((each) => each.id === id);
    if (node) {
      const { position: _position, ui: _ui, command, ...rest } = node;
      return { ...rest, ...(command !== undefined && { command: command.split("\n") }) };
    }
    return definition[id];
  };
  const text = (value: unknown) => (value === undefined ? "" : JSON.stringify(sorted(value), null, 2));
  return (
    <ul className="space-y-2">
      {list.map((entry) => (
        <li key={entry.id} className="rounded-lg border">
          <details open={list.length <= 5}>
            <summary className="cursor-pointer px-3 py-2 text-sm">
              {words[entry.kind]} <span className="font-medium">{entry.name}</span>
              {entry.fields.length > 0 && <span className="text-muted">: {entry.fields.join(", ")}</span>}
            </summary>
            <pre tabIndex={0} className="max-h-80 overflow-auto border-t bg-sunken py-1.5 text-xs leading-relaxed">
              <LineDiff before={text(part(before, entry.id))} after={text(part(after, entry.id))} />
            </pre>
          </details>
        </li>
      ))}
    </ul>
  );
}
