import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { ArrowDown, ArrowUp, Ban, Download } from "lucide-react";
import { ask } from "../../api/client.ts";
import { apiOf, useApi } from "../../api/team.ts";
import { useMissing } from "../../identity/queries.ts";
import { Answer } from "../../page/Answer.tsx";
import { Page } from "../../page/Page.tsx";
import { active, StatusPill } from "../../page/status.tsx";
import { useChange } from "../../page/useChange.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Checkbox } from "../../ui/Field.tsx";
import { credits, duration, plural } from "../../ui/format.ts";
import { Table, Td, Th } from "../../ui/Table.tsx";
import { toast } from "../../ui/toast.ts";
import { cancelRun } from "../queries.ts";
import { type Column, cell, type Sweep, type SweepRun, sorted } from "./sweep.ts";

const mostOutputs = 5;

/** SweepPage shows the runs of a sweep as a table. */
export function SweepPage() {
  const { sweepId } = useParams({ from: "/inside/runs/sweeps/$sweepId" });
  const search = useSearch({ from: "/inside/runs/sweeps/$sweepId" });
  const outputs = search.outputs ?? "";
  const sweep = useQuery({
    queryKey: ["sweep", sweepId, outputs],
    queryFn: ({ client }) =>
      ask(
        apiOf(client).GET("/api/sweeps/{id}", {
          params: { path: { id: sweepId }, query: { ...(outputs && { outputs }) } },
        }),
      ),
    placeholderData: (before) => before,
    refetchInterval: (query) => (query.state.data?.runs.some(({ run }) => active(run.status)) ? 4000 : false),
  });
  return (
    <Answer query={sweep} id={sweepId}>
      {(found) => (
        <Page
          title={found.name ?? `Sweep of ${found.workflowName}`}
          intro={
            <>
              {plural(found.runs.length, "run")} of{" "}
              <Link to="/workflows/$workflowId" params={{ workflowId: found.workflowId }} className="underline">
                {found.workflowName}
              </Link>
              . {found.varied.join(", ")} {found.varied.length === 1 ? "varies" : "vary"}.
              {found.note && ` ${found.note}`}
            </>
          }
          actions={<Actions sweep={found} outputs={outputs} />}
        >
          <SweepTable sweep={found} />
        </Page>
      )}
    </Answer>
  );
}

function Actions({ sweep, outputs }: { sweep: Sweep; outputs: string }) {
  const api = useApi();
  const client = useQueryClient();
  const going = sweep.runs.filter(({ run }) => active(run.status));
  const cancel = useMutation({
    mutationFn: () => Promise.all(going.map(({ run }) => cancelRun(api, run.id))),
    onSuccess: (done) => toast.ok(`Cancelling ${plural(done.length, "run")}`),
    onSettled: () => client.invalidateQueries({ queryKey: ["sweep", sweep.id] }),
  });
  const query = outputs ? `?outputs=${encodeURIComponent(outputs)}` : "";
  return (
    <>
      {going.length > 0 && (
        <Button
          size="sm"
          look="danger-quiet"
          icon={<Ban className="size-4" aria-hidden />}
          busy={cancel.isPending}
          onClick={() => cancel.mutate()}
        >
          Cancel {plural(going.length, "run")}
        </Button>
      )}
      <a className={buttonClass("secondary", "sm")} href={`/api/sweeps/${sweep.id}/table.csv${query}`} download>
        <Download className="size-4" aria-hidden /> Download CSV
      </a>
    </>
  );
}

function SweepTable({ sweep }: { sweep: Sweep }) {
  const free = useMissing("billing");
  const search = useSearch({ from: "/inside/runs/sweeps/$sweepId" });
  const set = useChange<typeof search>();
  const chosen = (search.outputs ?? "").split(",").filter(Boolean);
  const columns: [key: string, title: string, column: Column][] = [
    ["number", "Run", { kind: "number" }],
    ...sweep.varied.map((name): [string, string, Column] => [`p.${name}`, name, { kind: "parameter", name }]),
    ["status", "State", { kind: "status" }],
    ["took", "Duration", { kind: "took" }],
    ...(free ? [] : [["credits", "Credits", { kind: "credits" }] as [string, string, Column]]),
    ...chosen.map((name): [string, string, Column] => [`o.${name}`, name, { kind: "output", name }]),
  ];
  const by = columns.find(([key]) => key === search.by) ?? columns[0];
  const rows = by ? sorted(sweep.runs, by[2], search.down ?? false) : sweep.runs;
  const choose = (port: string, on: boolean) => {
    const next = on ? [...chosen, port] : chosen.filter((each) => each !== port);
    set({ outputs: next.join(",") || undefined });
  };
  return (
    <>
      {sweep.ports.length > 0 && (
        <fieldset className="mb-3 flex flex-wrap gap-x-4 gap-y-1 text-sm">
          <legend className="mb-1 font-medium">Outputs to show</legend>
          {sweep.ports.map((port) => (
            <Checkbox
              key={port}
              label={port}
              checked={chosen.includes(port)}
              disabled={!chosen.includes(port) && chosen.length >= mostOutputs}
              onChange={(event) => choose(port, event.target.checked)}
            />
          ))}
        </fieldset>
      )}
      <Table
        label="Runs of the sweep"
        head={columns.map(([key, title]) => {
          const here = by?.[0] === key;
          return (
            <Th key={key} aria-sort={here ? (search.down ? "descending" : "ascending") : undefined}>
              <button
                type="button"
                className="inline-flex items-center gap-1 whitespace-nowrap hover:underline"
                onClick={() => set({ by: key, down: here && !search.down ? true : undefined })}
              >
                {title}
                {here &&
                  (search.down ? (
                    <ArrowDown className="size-3.5" aria-hidden />
                  ) : (
                    <ArrowUp className="size-3.5" aria-hidden />
                  ))}
              </button>
            </Th>
          );
        })}
      >
        {rows.map((row) => (
          <tr key={row.run.id} className="hover:bg-sunken/60">
            {columns.map(([key, , column]) => (
              <Td key={key} className="tabular">
                <Cell row={row} column={column} />
              </Td>
            ))}
          </tr>
        ))}
      </Table>
    </>
  );
}

function Cell({ row, column }: { row: SweepRun; column: Column }) {
  const { run } = row;
  if (column.kind === "number") {
    return (
      <Link to="/runs/$runId" params={{ runId: run.id }} className="font-medium hover:underline">
        #{run.number}
      </Link>
    );
  }
  if (column.kind === "status") return <StatusPill status={run.status} />;
  if (column.kind === "took") return <>{run.durationMs === null ? "–" : duration(run.durationMs)}</>;
  if (column.kind === "credits") return <>{credits(run.creditsUsed)}</>;
  const value = cell(row, column);
  if (value === null) return <>–</>;
  const output = column.kind === "output" ? row.outputs.find((each) => each.port === column.name) : undefined;
  if (!output) return <span className="break-all">{value}</span>;
  return (
    <a href={output.url} className="break-all underline" title={output.sha256}>
      {value}
      {output.files > 1 && ` and ${output.files - 1} more`}
    </a>
  );
}
