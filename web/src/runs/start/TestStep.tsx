import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { FlaskConical } from "lucide-react";
import { type Api, ask, bare, once } from "../../api/client.ts";
import { apiOf, useApi } from "../../api/team.ts";
import { useWhyNot } from "../../identity/queries.ts";
import { active, StatusPill } from "../../page/status.tsx";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { firstLine } from "../errorMessage.ts";
import { ColoredText } from "../log/ColoredText.tsx";
import { runQuery } from "../queries.ts";
import { Outputs } from "../results/Outputs.tsx";

interface TestStepProps {
  workflowId: string;
  node: string;
  /** The steps before it, whose files it reads. */
  before: string[];
  flush: () => Promise<void>;
}

const looked = 10; // runs, newest first

/** sourceQuery is the newest run that ended and has the files of all steps before this one. */
const sourceQuery = (workflowId: string, before: string[]) =>
  queryOptions({
    queryKey: ["runs", "test-source", workflowId, before],
    queryFn: async ({ client }) => {
      const api = apiOf(client);
      const rows = await ask(api.GET("/api/runs", { params: { query: { workflowId, limit: looked } } }));
      for (const { id, status } of rows) {
        if (active(status)) continue;
        if (before.length === 0) return id;
        const { nodes } = await bare(api.GET("/api/runs/{id}", { params: { path: { id } } }));
        const done = new Set(nodes.filter((node) => node.status === "succeeded").map((node) => node.id));
        if (before.every((each) => done.has(each))) return id;
      }
      return null;
    },
  });

/** TestStep runs one step by itself with the inputs of its last run, and shows what it writes and makes. */
export function TestStep({ workflowId, node, before, flush }: TestStepProps) {
  const api = useApi();
  const client = useQueryClient();
  const whyNot = useWhyNot()("start runs");
  const source = useQuery(sourceQuery(workflowId, before));
  const testKey = ["test-run", workflowId, node];
  const test = useQuery<string | null>({ queryKey: testKey, queryFn: () => null, staleTime: Number.POSITIVE_INFINITY });
  const start = useMutation({
    mutationFn: async (from: string) => {
      await flush();
      return ask(
        api.POST("/api/runs/{id}/retry", {
          params: { path: { id: from }, header: once() },
          body: { definition: "current", only: [node] },
        }),
      );
    },
    onSuccess: ({ runId }) => {
      client.setQueryData(testKey, runId);
      void client.invalidateQueries({ queryKey: ["runs"] });
    },
  });
  const from = source.data;
  const missing =
    before.length > 0
      ? "No earlier run has inputs for this step. Run the workflow once first."
      : "Run the workflow once first: the test uses that run's inputs.";
  return (
    <section aria-label="Test this step" className="space-y-2">
      <div className="flex items-center gap-2">
        <Button
          size="sm"
          icon={<FlaskConical className="size-4" aria-hidden />}
          busy={start.isPending}
          disabledReason={whyNot ?? (from === null ? missing : source.isPending ? "Looking for an earlier run…" : null)}
          onClick={() => from && start.mutate(from)}
        >
          Test this step
        </Button>
        <p className="text-[13px] text-muted">Runs only this step, with the inputs of its last run. Billed as a run.</p>
      </div>
      {test.data && <Result key={test.data} runId={test.data} node={node} />}
    </section>
  );
}

const shown = 64 * 1024; // bytes of its log

/** logEnd reads the end of a step's log. */
async function logEnd(api: Api, runId: string, node: string): Promise<string> {
  const read = (offset: number) =>
    ask(
      api.GET("/api/runs/{id}/logs", {
        params: { path: { id: runId }, query: { nodeId: node, offset, limit: shown } },
      }),
    );
  const first = await read(0);
  return first.size <= shown ? first.text : (await read(first.size - shown)).text;
}

function Result({ runId, node }: { runId: string; node: string }) {
  const run = useQuery({
    ...runQuery(runId),
    refetchInterval: (query) => (!query.state.data || active(query.state.data.status) ? 1000 : false),
  });
  const going = !run.data || active(run.data.status);
  const log = useQuery({
    queryKey: ["test-log", runId, node, going],
    queryFn: ({ client }) => logEnd(apiOf(client), runId, node),
    refetchInterval: going ? 1000 : false,
    placeholderData: (old) => old,
  });
  if (!run.data) return null;
  const text = log.data?.trimEnd() ?? "";
  const state = run.data.nodes.find((each) => each.id === node)?.status ?? "pending";
  return (
    <div className="space-y-2 rounded-lg border p-3">
      <div className="flex items-center gap-2 text-sm" role="status">
        <StatusPill status={going ? state : run.data.status} />
        <span className="flex-1" />
        <Link to="/runs/$runId" params={{ runId }} className={buttonClass("quiet", "sm")}>
          Open run
        </Link>
      </div>
      {run.data.errorMessage && <p className="text-sm text-danger">{firstLine(run.data.errorMessage)[0]}</p>}
      <section
        aria-label="Log of the test"
        tabIndex={0}
        className="max-h-60 overflow-auto rounded-lg bg-sunken p-2 text-[12.5px]"
      >
        <pre className="whitespace-pre-wrap">
          {text ? (
            <ColoredText text={text} />
          ) : (
            <span className="text-muted">{going ? "Nothing logged yet." : "Nothing was logged."}</span>
          )}
        </pre>
      </section>
      {!going && <Outputs run={run.data} node={node} />}
    </div>
  );
}
