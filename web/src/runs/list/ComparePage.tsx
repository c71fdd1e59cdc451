import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { ArrowLeftRight, GitCompare } from "lucide-react";
import { lazy, type ReactNode, Suspense } from "react";
import { ask, type Schemas } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";
import { useMissing } from "../../identity/queries.ts";
import { Answer } from "../../page/Answer.tsx";
import { Page, Section } from "../../page/Page.tsx";
import { runTitle } from "../../page/runTitle.ts";
import { looks, StatusPill } from "../../page/status.tsx";
import { useChange } from "../../page/useChange.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Empty } from "../../ui/Empty.tsx";
import { credits, duration, plural } from "../../ui/format.ts";
import { Table, Td, Th } from "../../ui/Table.tsx";
import { runQuery } from "../queries.ts";

const DiffView = lazy(async () => ({ default: (await import("../../graph/DiffView.tsx")).DiffView }));

type Comparison = Schemas["RunComparison"];

/** ComparePage compares any two runs. */
export function ComparePage() {
  const search = useSearch({ from: "/inside/runs/compare" });
  const set = useChange<typeof search>();
  const { a, b } = search;
  if (!a || !b) {
    return (
      <Page title="Compare runs">
        <Empty
          icon={<GitCompare />}
          title="Choose two runs"
          actions={
            <Link to="/runs" className={buttonClass("primary")}>
              Go to runs
            </Link>
          }
        >
          Select two runs in the list, then choose Compare.
        </Empty>
      </Page>
    );
  }
  return (
    <Page
      title="Compare runs"
      actions={
        <Button size="sm" icon={<ArrowLeftRight className="size-4" aria-hidden />} onClick={() => set({ a: b, b: a })}>
          Swap
        </Button>
      }
    >
      <Both a={a} b={b} />
    </Page>
  );
}

function Both({ a, b }: { a: string; b: string }) {
  const both = useQuery({
    queryKey: ["compare", a, b],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/runs/compare", { params: { query: { a, b } } })),
  });
  return (
    <Answer query={both} id={a}>
      {(comparison) => <Sides comparison={comparison} />}
    </Answer>
  );
}

const took = (ms: number | null) => (ms === null ? "–" : duration(ms));
const valueText = (value: unknown) =>
  value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
const hash = (file: Schemas["GivenFile"] | null) => (file ? (file.sha256?.slice(0, 12) ?? "deleted") : "–");

function stepText(node: Schemas["RunNode"] | null): string {
  return node ? `${looks[node.status].word}${node.cached ? " (reused)" : ""}, ${took(node.durationMs)}` : "–";
}

function Sides({ comparison }: { comparison: Comparison }) {
  const free = useMissing("billing");
  const { a, b, outputCounts: counts } = comparison;
  const steps = new Map(comparison.nodes.map((node) => [node.id, node.name]));
  const files = (list: Schemas["GivenFile"][]) => list.map((file) => file.name).join(", ") || "–";
  return (
    <>
      <Rows
        title="Summary"
        sides={[a, b].map((run) => (
          <Link key={run.id} to="/runs/$runId" params={{ runId: run.id }} className="underline">
            {runTitle(run)}
          </Link>
        ))}
        rows={[
          ["State", <StatusPill key="a" status={a.status} />, <StatusPill key="b" status={b.status} />],
          ["Duration", took(a.durationMs), took(b.durationMs)],
          ...(free ? [] : [["Credits", credits(a.creditsUsed), credits(b.creditsUsed)] as [string, string, string]]),
          ["Size", `${a.compute.vcpu} vCPU, ${a.compute.ramGb} GB`, `${b.compute.vcpu} vCPU, ${b.compute.ramGb} GB`],
        ]}
      />
      <Rows
        title="Parameters and inputs"
        rows={[
          ...comparison.parameters.map((p): Row => [p.name, valueText(p.a), valueText(p.b), p.same]),
          ...comparison.inputs.map((i): Row => [`${i.name} (files)`, files(i.a), files(i.b), i.same]),
        ]}
      />
      <Rows
        title="Steps"
        rows={comparison.nodes.map(
          (n): Row => [n.name === n.id ? n.id : `${n.name} (${n.id})`, stepText(n.a), stepText(n.b)],
        )}
      />
      <Rows
        title="Outputs"
        intro={`${plural(counts.same, "file is", "files are")} the same, ${counts.different} differ, ${counts.onlyA + counts.onlyB} are in one run only.`}
        rows={comparison.outputs.map(
          (o): Row => [
            `${steps.get(o.nodeId) || o.nodeId} · ${o.port}${o.index > 0 ? ` [${o.index}]` : ""} · ${o.name}`,
            hash(o.a),
            hash(o.b),
            o.same,
          ],
        )}
      />
      <Section title="Definition">
        {comparison.sameDefinition ? (
          <p className="text-sm text-muted">Both runs used the same definition.</p>
        ) : (
          <Definitions a={a.id} b={b.id} />
        )}
      </Section>
    </>
  );
}

function Definitions({ a, b }: { a: string; b: string }) {
  const before = useQuery(runQuery(a));
  const after = useQuery(runQuery(b));
  return (
    <Answer query={before}>
      {(first) => (
        <Answer query={after}>
          {(second) => (
            <Suspense fallback={null}>
              <DiffView before={first.definition} after={second.definition} />
            </Suspense>
          )}
        </Answer>
      )}
    </Answer>
  );
}

type Row = [name: string, a: ReactNode, b: ReactNode, same?: boolean];

function Rows({
  title,
  intro,
  rows,
  sides = ["A", "B"],
}: {
  title: string;
  intro?: string;
  rows: Row[];
  sides?: ReactNode[];
}) {
  return (
    <Section title={title} {...(intro && { intro })}>
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
              <Th>{sides[0]}</Th>
              <Th>{sides[1]}</Th>
            </>
          }
        >
          {rows.map(([name, a, b, same]) => (
            <tr key={name} className={same === false ? "bg-warn-soft/50" : undefined}>
              <Td className="font-medium break-words">{name}</Td>
              <Td className="break-all">{a}</Td>
              <Td className="break-all">
                {b}
                {same === false && <span className="sr-only"> (different)</span>}
              </Td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}
