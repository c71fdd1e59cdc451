import { Dialog } from "../../ui/Dialog.tsx";
import { type Action, actions, names } from "./actions.ts";
import { shown } from "./keys.ts";

const gestures = [
  ["Select several steps", "Shift and click, or Shift and drag"],
  ["Move the view", "Drag the canvas, or Space and drag"],
  ["Move the selected steps", "Arrow keys"],
  ["Add a step here", "Double click the canvas"],
] as const;

/** ShortcutsDialog lists the keys and gestures of the editor. */
export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  const groups = [...new Set(names.map((name) => actions[name].group))];
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="Keyboard shortcuts">
      <div className="space-y-4">
        {groups.map((group) => (
          <section key={group}>
            <h3 className="mb-1 text-sm text-muted">{group}</h3>
            <dl className="space-y-1 text-sm">
              {names
                .map((name): Action => actions[name])
                .filter((action) => action.group === group && action.shortcuts.length > 0)
                .map(({ label, shortcuts }) => (
                  <Row key={label} label={label}>
                    {shortcuts.map((each) => (
                      <kbd key={each} className="rounded border bg-sunken px-1.5 py-0.5 font-code text-xs">
                        {shown(each)}
                      </kbd>
                    ))}
                  </Row>
                ))}
            </dl>
          </section>
        ))}
        <section>
          <h3 className="mb-1 text-sm text-muted">Mouse and arrow keys</h3>
          <dl className="space-y-1 text-sm">
            {gestures.map(([label, how]) => (
              <Row key={label} label={label}>
                {how}
              </Row>
            ))}
          </dl>
        </section>
      </div>
    </Dialog>
  );
}

function Row({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div className="flex items-center justify-between gap-4">
      <dt>{label}</dt>
      <dd className="flex gap-1 text-right">{children}</dd>
    </div>
  );
}
