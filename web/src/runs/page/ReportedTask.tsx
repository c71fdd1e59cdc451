import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Answer } from "../../page/Answer.tsx";
import { Copy } from "../../ui/Copy.tsx";
import { Select } from "../../ui/Field.tsx";
import { SkeletonRows } from "../../ui/Skeleton.tsx";
import { plain } from "../log/ansi.ts";
import { type Task, taskFacts, taskQuery } from "./reported.ts";

/** ReportedTask shows one reported attempt of a task, with its script. */
export default function ReportedTask({ run, task, attempts }: { run: string; task: number; attempts: number[] }) {
  const newest = attempts.at(-1) ?? 1;
  const [chosen, setChosen] = useState<number | null>(null);
  const attempt = chosen ?? newest;
  const query = useQuery(taskQuery(run, task, attempt));
  return (
    <div className="mt-4 space-y-3 text-sm">
      {attempts.length > 1 && (
        <Select
          aria-label="Attempt"
          className="h-8.5! w-auto!"
          value={attempt}
          onChange={(event) => setChosen(Number(event.target.value))}
        >
          {attempts.map((each) => (
            <option key={each} value={each}>
              Attempt {each}
            </option>
          ))}
        </Select>
      )}
      <Answer query={query} loading={<SkeletonRows rows={4} />}>
        {(found) => <Facts task={found} />}
      </Answer>
    </div>
  );
}

function Facts({ task }: { task: Task }) {
  return (
    <>
      <dl className="grid gap-x-6 gap-y-1.5 sm:grid-cols-2">
        {taskFacts(task).map(([term, value]) => (
          <div key={term} className="min-w-0">
            <dt className="text-[13px] text-muted">{term}</dt>
            <dd className="tabular break-all">{value}</dd>
          </div>
        ))}
      </dl>
      {task.message && <Block title="Message and log" text={task.message.split("\n").map(plain).join("\n")} />}
      {task.script ? (
        <Block title="Script" text={task.script} />
      ) : (
        <p className="text-muted">The script of this attempt was not reported.</p>
      )}
    </>
  );
}

function Block({ title, text }: { title: string; text: string }) {
  return (
    <section aria-label={title}>
      <h3 className="mb-1 flex items-center gap-2">
        {title} <Copy text={text} label={`Copy: ${title}`} />
      </h3>
      <pre tabIndex={0} className="max-h-72 overflow-auto rounded-md bg-sunken p-2 text-xs">
        {text}
      </pre>
    </section>
  );
}
