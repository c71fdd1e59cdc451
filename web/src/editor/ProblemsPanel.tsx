import { CircleCheck, TriangleAlert } from "lucide-react";
import { useStore } from "zustand";
import { useEditor, useGraph } from "./context.ts";

/** ProblemsPanel is what stands in the way of a run; a click leads to the step. */
export function ProblemsPanel() {
  const { problems, show } = useEditor();
  const { document } = useGraph();
  const list = useStore(problems, (state) => state.list);
  if (list === null) return <p className="text-sm text-muted">Not checked yet.</p>;
  if (list.length === 0) {
    return (
      <p className="flex items-center gap-2 text-sm">
        <CircleCheck className="size-4.5 text-ok" aria-hidden /> No problems: ready to run
      </p>
    );
  }
  return (
    <ul className="space-y-1.5">
      {list.map((problem) => {
        const name = problem.node ? document.node(problem.node)?.name || problem.node : "Workflow";
        return (
          <li key={problem.path + problem.message}>
            <button
              type="button"
              disabled={!problem.node}
              onClick={() => problem.node && show(problem.node)}
              className="flex w-full gap-2.5 rounded-lg border px-3 py-2 text-left text-sm enabled:hover:bg-sunken"
            >
              <TriangleAlert className="mt-0.5 size-4 shrink-0 text-warn" aria-hidden />
              <span className="min-w-0">
                <span className="font-medium">{name}</span>
                <span className="block break-words">{problem.message}</span>
                <code className="text-xs text-muted">{problem.path}</code>
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
