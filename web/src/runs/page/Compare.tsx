import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { DiffView } from "../../graph/DiffView.tsx";
import { useMissing } from "../../identity/queries.ts";
import { Answer } from "../../page/Answer.tsx";
import { looks, StatusPill } from "../../page/status.tsx";
import { credits, duration } from "../../ui/format.ts";
import { Table, Td, Th } from "../../ui/Table.tsx";
import { Time } from "../../ui/Time.tsx";
import type { Run } from "../queries.ts";
import { runQuery, runsQuery } from "../queries.ts";
import { compared, type Row } from "./comparison.ts";

/** Compare shows the differences from the previous run of the same workflow. */
export function Compare({ run }: { run: Run }) {
  const runs = useQuery(runsQuery({ workflowId: run.workflowId }));
  return (
    <Answer query={runs}>
      {(list) => {
        const before = list.find(
          (each) => each.createdAt < run.createdAt && each.id !== run.id && !each.tags.includes("test"),
        );
        if (!before) return <p className="text-sm text-muted">This is the workflow's first run.</p>;
        return <Beside run={run} other={before.id} />;
      }}
    </Answer>
  );
}

function Beside({ run, other }: { run: Run; other: string }) {
  const earlier = useQuery(runQuery(other));
  return <Answer query={earlier}>{(before) => <Both before={before} after={run} />}</Answer>;
}

function Both({ before, after }: { before: Run; after: Run }) {
  const free = useMissing("billing");
  const took = (ms: number | null) => (ms === null ? "–" : duration(ms));
  const old = new Map(before.nodes.map((node) => [node.id, node]));
  const nodes = after.nodes.map((node): Row => {
    const was = old.get(node.id);
    const text = (each: typeof node | undefined) =>
      each ? `${looks[each.status].word}${each.cached ? " (reused)" : ""}, ${took(each.durationMs)}` : "–";
    return { name: node.name || node.id, before: text(was), after: text(node) };
  });
  return (
    <div className="space-y-6">
      <p className="text-sm">
        Compared with{" "}
        <Link to="/runs/$runId" params={{ runId: before.id }} className="underline">
          previous run
        </Link>
        , <Time at={before.createdAt} />: <StatusPill status={before.status} />{" "}
        <Link to="/runs/compare" search={{ a: before.id, b: after.id }} className="underline">
          Compare in full
        </Link>
      </p>
      <Pairs
        title="Summary"
        rows={[
          { name: "Duration", before: took(before.durationMs), after: took(after.durationMs) },
          ...(free
            ? []
            : [{ name: "Credits", before: credits(before.creditsUsed), after: credits(after.creditsUsed) }]),
          ...compared(
            { Size: `${before.compute.vcpu} vCPU, ${before.compute.ramGb} GB` },
            { Size: `${after.compute.vcpu} vCPU, ${after.compute.ramGb} GB` },
          ),
        ]}
      />
      <Pairs
        title="Changed parameters and inputs"
        rows={[...compared(before.parameters, after.parameters), ...compared(before.inputs, after.inputs)]}
      />
      <section>
        <h2 className="mb-2">Workflow</h2>
        <DiffView before={before.definition} after={after.definition} />
      </section>
      <Pairs title="Steps" rows={nodes} />
    </div>
  );
}

function Pairs({ title, rows }: { title: string; rows: Row[] }) {
  return (
    <section>
      <h2 className="mb-2">{title}</h2>
      {rows.length === 0 ? (
        <p className="text-sm text-muted">None.</p>
      ) : (
        <Table
          label={title}
          head={
            <>
              <Th>
                <span className="sr-only">What</span>
              </Th>
              <Th>Before</Th>
              <Th>This run</Th>
            </>
          }
        >
          {rows.map((row) => (
            <tr key={row.name}>
              <Td className="font-medium">{row.name}</Td>
              <Td className="break-all text-muted">{row.before}</Td>
              <Td className="break-all">{row.after}</Td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
