import { CircleCheck, Info, TriangleAlert } from "lucide-react";
import { useStore } from "zustand";
import { sentence } from "../api/failure.ts";
import type { Finding } from "../definition/problems.ts";
import { useEditor, useWorkspace } from "./context.ts";
import { FixButton } from "./Marked.tsx";

/** ProblemsPanel lists what keeps the workflow from running, then what is probably a mistake. A click leads to the field. */
export function ProblemsPanel() {
  const list = useStore(useEditor().problems, (state) => state.list);
  if (list === null) return <p className="text-sm text-muted">Not checked yet.</p>;
  const problems = list.filter((each) => !each.warning);
  const warnings = list.filter((each) => each.warning);
  return (
    <div className="space-y-5">
      {problems.length > 0 ? (
        <List findings={problems} />
      ) : (
        <p className="flex items-center gap-2 text-sm">
          <CircleCheck className="size-4.5 text-ok" aria-hidden /> No problems: ready to run
        </p>
      )}
      {warnings.length > 0 && (
        <section className="space-y-1.5">
          <h3 className="text-sm text-muted">Warnings</h3>
          <List findings={warnings} />
        </section>
      )}
    </div>
  );
}

function List({ findings }: { findings: Finding[] }) {
  const { goTo } = useWorkspace();
  return (
    <ul className="space-y-1.5">
      {findings.map((finding) => {
        const Icon = finding.warning ? Info : TriangleAlert;
        return (
          <li key={finding.path + finding.message} className="rounded-lg border text-sm">
            <button
              type="button"
              onClick={() => goTo(finding)}
              className="flex w-full gap-2.5 rounded-lg px-3 py-2 text-left hover:bg-sunken"
            >
              <Icon className={`mt-0.5 size-4 shrink-0 ${finding.warning ? "text-muted" : "text-warn"}`} aria-hidden />
              <span className="min-w-0">
                <span className="font-medium">{finding.about}</span>
                <span className="block break-words">{sentence(finding.message)}</span>
              </span>
            </button>
            <div className="px-3 pb-2 pl-9.5 empty:hidden">
              <FixButton finding={finding} />
            </div>
          </li>
        );
      })}
    </ul>
  );
}
