import { Link } from "@tanstack/react-router";
import { Check, Play, X } from "lucide-react";
import type { ReactNode } from "react";
import { useWhyNot } from "../identity/queries.ts";
import { Button, buttonClass, IconButton } from "../ui/Button.tsx";
import { classes } from "../ui/classes.ts";
import { first } from "./firstExample.ts";
import type { WorkflowRow } from "./queries.ts";
import { useFirstTemplate } from "./useTemplate.ts";
import { endWelcome } from "./welcomed.ts";

/** Welcome leads from nothing to a completed run in three steps, and ticks them off. */
export default function Welcome({ rows, onLeave }: { rows: WorkflowRow[]; onLeave: () => void }) {
  const example = useFirstTemplate();
  const whyNot = useWhyNot()("start runs");
  const ran = rows.find((row) => row.lastRuns.length > 0);
  const done = rows.find((row) => row.lastRuns.some((run) => run.status === "completed"));
  const shown = done ?? ran;
  const [run] = shown?.lastRuns ?? [];
  const leave = () => {
    endWelcome();
    onLeave();
  };
  return (
    <section aria-label="First steps" className="mb-6 rounded-xl border bg-surface p-5">
      <div className="mb-4 flex items-start justify-between gap-3">
        <div>
          <h2>{done ? "It works. Now adapt it" : "Welcome. Start with an example"}</h2>
          <p className="mt-0.5 text-sm text-muted">Three steps, about a minute.</p>
        </div>
        <IconButton size="sm" label="Skip" icon={<X className="size-4" aria-hidden />} onClick={leave} />
      </div>
      <ol className="grid gap-3 md:grid-cols-3">
        <Step number={1} done={Boolean(ran)} title={`Run ${(shown ?? first).name}`} text={(shown ?? first).description}>
          {!ran && (
            <Button
              look="primary"
              size="sm"
              icon={<Play className="size-4" aria-hidden />}
              busy={example.isPending}
              disabledReason={whyNot}
              onClick={() => example.mutate()}
            >
              Run now
            </Button>
          )}
        </Step>
        <Step number={2} done={Boolean(done)} title="Watch it" text="See each step's state, log and outputs live.">
          {run && (
            <Link
              to="/runs/$runId"
              params={{ runId: run.id }}
              className={buttonClass(done ? "secondary" : "primary", "sm")}
            >
              {done ? "View outputs" : "Watch the run"}
            </Link>
          )}
        </Step>
        <Step
          number={3}
          done={false}
          title="Change it"
          text="Open the canvas, edit a command and run again. Unchanged steps are reused."
        >
          {done && (
            <Link
              to="/workflows/$workflowId"
              params={{ workflowId: done.id }}
              className={buttonClass("primary", "sm")}
              onClick={leave}
            >
              Open canvas
            </Link>
          )}
        </Step>
      </ol>
    </section>
  );
}

function Step({
  number,
  done,
  title,
  text,
  children,
}: {
  number: number;
  done: boolean;
  title: string;
  text: string;
  children: ReactNode;
}) {
  return (
    <li className="flex gap-3 rounded-lg bg-bg p-4">
      <span
        className={classes(
          "grid size-6 shrink-0 place-items-center rounded-full text-[13px] font-semibold",
          done ? "bg-ok-soft text-ok" : "bg-accent-soft text-accent",
        )}
      >
        {done ? <Check className="size-4" aria-label="Done" /> : number}
      </span>
      <div className="min-w-0 flex-1">
        <h3 className="text-sm">{title}</h3>
        <p className="mt-0.5 mb-2 line-clamp-3 text-[13px] text-muted">{text}</p>
        {children}
      </div>
    </li>
  );
}
