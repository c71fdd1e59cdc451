import { LineDiff } from "../graph/LineDiff.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { useCanEdit, useGraph, useSession, useShown, useWorkspace } from "./context.ts";
import { type Leftover, scriptEdits, whyLeft } from "./document/rename.ts";

const kinds = { step: "step", input: "input", parameter: "parameter", output: "output", port: "input" };

/** LeftoverDialog shows what still says an old name after a rename. Commands are changed only when somebody has seen how. */
export function LeftoverDialog({ leftover, onClose }: { leftover: Leftover; onClose: () => void }) {
  const { what, to, expressions } = leftover;
  const { document } = useGraph();
  useShown(); // others may edit the commands meanwhile
  const scripts = scriptEdits(document, what, to);
  const { show } = useWorkspace();
  const canEdit = useCanEdit();
  const live = useSession((state) => state.live);
  const count = `${scripts.length} ${scripts.length === 1 ? "command" : "commands"}`;
  const stepOf = (path: string) => {
    const key = document.keyOf(path.split(".")[1] ?? "");
    return { key, node: key === null ? null : document.node(key) };
  };
  return (
    <Dialog
      wide
      open
      onOpenChange={(open) => !open && onClose()}
      title={scripts.length > 0 ? "Change the commands too?" : "Some expressions still use the old name"}
      description={`The ${kinds[what.kind]} “${what.name}” is called “${to}” now.`}
      footer={
        <>
          <Button onClick={onClose}>{scripts.length > 0 ? "Leave as they are" : "Close"}</Button>
          {scripts.length > 0 && (
            <Button
              look="primary"
              disabledReason={canEdit ? null : "You have view-only access."}
              onClick={() => {
                document.apply(scriptEdits(document, what, to));
                onClose();
              }}
            >
              Replace in {count}
            </Button>
          )}
        </>
      }
    >
      <div className="space-y-4">
        {scripts.map(({ path, value }) => {
          const { node } = stepOf(path);
          const variable = /\.env\.(\w+)$/.exec(path)?.[1];
          const before = (variable ? node?.env?.[variable] : node?.command) ?? "";
          return (
            <section key={path}>
              <h3 className="mb-1 text-sm">
                {node?.name || node?.id}
                {variable && <span className="text-muted">, variable {variable}</span>}
              </h3>
              <pre className="overflow-x-auto rounded-lg border bg-sunken py-1.5 text-xs leading-relaxed">
                <LineDiff before={before} after={String(value)} around={1} />
              </pre>
            </section>
          );
        })}
        {expressions.length > 0 && (
          <section className="space-y-1 text-sm">
            <p>{whyLeft(leftover, live)}</p>
            <ul className="space-y-1">
              {expressions.map(({ path, start, text }) => {
                const { key, node } = stepOf(path);
                return (
                  <li key={`${path} ${start}`}>
                    <button
                      type="button"
                      className="underline"
                      onClick={() => {
                        onClose();
                        if (key) show(key);
                      }}
                    >
                      {node?.name || node?.id}
                    </button>
                    : <code>{text}</code>
                  </li>
                );
              })}
            </ul>
          </section>
        )}
      </div>
    </Dialog>
  );
}
