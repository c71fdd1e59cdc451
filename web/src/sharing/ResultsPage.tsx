import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Copy, FileText, Link2Off } from "lucide-react";
import { useEffect, useState } from "react";
import { ask, askPage, type Schemas } from "../api/client.ts";
import { type ApiFailure, isFailure } from "../api/failure.ts";
import { apiOf, useApi } from "../api/team.ts";
import { useMaybeMe } from "../identity/queries.ts";
import { useTitle } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { runTitle } from "../page/runTitle.ts";
import { active, looks, StatusPill } from "../page/status.tsx";
import { OutputsTable } from "../runs/results/OutputsTable.tsx";
import { ResultFiles } from "../runs/results/Results.tsx";
import { Button, buttonClass } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { duration } from "../ui/format.ts";
import { SkeletonRows } from "../ui/Skeleton.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { GraphPreview } from "../workflows/GraphPreview.tsx";
import type { Definition } from "../workflows/queries.ts";

type Results = Schemas["SharedResults"];

/** readResultToken takes a result link's token from the fragment, which never reaches a server's log. */
export function readResultToken(hash: string): string | null {
  const token = hash.replace(/^#/, "");
  return /^mrr_[0-9A-Za-z]+$/.test(token) ? token : null;
}

/** ResultsPage is where a result link leads: what a run made, for people without an account. */
export function ResultsPage() {
  useTitle("Shared results");
  const [token, setToken] = useState(() => readResultToken(location.hash));
  useEffect(() => {
    const read = () => setToken(readResultToken(location.hash));
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  const results = useInfiniteQuery({
    queryKey: ["results", token],
    queryFn: ({ client, pageParam }) =>
      askPage(
        apiOf(client).POST("/api/results", {
          params: { query: { ...(pageParam && { cursor: pageParam }) } },
          // A view is counted when the page is opened, not for each further page or refresh.
          body: { token: token ?? "", again: client.getQueryData(["results", token]) !== undefined },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
    enabled: token !== null,
    // The addresses of files work for a quarter of an hour.
    refetchInterval: (query) => (goesOn(query.state.data?.pages[0]?.rows.status) ? 15_000 : 12 * 60_000),
    retry: false,
    staleTime: 5 * 60_000,
    meta: { shown: true },
  });
  const first = results.data?.pages[0]?.rows;
  return (
    <main className="mx-auto w-full max-w-5xl px-4 py-8">
      {token === null ? (
        <Ended title="This link is incomplete">
          Part of it is missing, perhaps because of a line break. Copy the whole link, or ask for it again.
        </Ended>
      ) : first && !ended(results.error) ? (
        <>
          <Shown
            results={first}
            outputs={results.data?.pages.flatMap((page) => page.rows.outputs) ?? []}
            token={token}
          />
          {results.hasNextPage && (
            <div className="mt-4 text-center">
              <Button busy={results.isFetchingNextPage} onClick={() => void results.fetchNextPage()}>
                Show more outputs
              </Button>
            </div>
          )}
        </>
      ) : results.error ? (
        <Failed error={results.error} />
      ) : (
        <SkeletonRows rows={6} />
      )}
    </main>
  );
}

function Ended({ title, children }: { title: string; children: string }) {
  return (
    <Empty icon={<Link2Off />} title={title}>
      {children}
    </Empty>
  );
}

function goesOn(status: Results["status"] | undefined): boolean {
  return status !== undefined && active(status);
}

/** ended tells whether a refusal says that the link does not work, or not any more. */
function ended(error: unknown): error is ApiFailure {
  return isFailure(error) && (error.status === 404 || error.status === 403);
}

function Failed({ error }: { error: unknown }) {
  if (!ended(error)) return <Problem error={error} />;
  const why =
    error.code === "expired"
      ? "It has expired."
      : error.code === "revoked"
        ? "It was revoked."
        : "It was revoked, or never existed.";
  return <Ended title="This link no longer works">{`${why} Ask the person who sent it for a new one.`}</Ended>;
}

function Shown({ results, outputs, token }: { results: Results; outputs: Results["outputs"]; token: string }) {
  useTitle(runTitle(results));
  const values = Object.entries(results.parameters);
  return (
    <>
      <header className="mb-6 flex flex-wrap items-start justify-between gap-3">
        <div>
          <h1 className="flex flex-wrap items-center gap-2">
            {runTitle(results)} <StatusPill status={results.status} />
          </h1>
          <p className="mt-1 text-sm text-muted">
            {results.sharedBy && `Shared by ${results.sharedBy}. `}Started <Time at={results.createdAt} />
            {results.durationMs !== null && `, took ${duration(results.durationMs)}`}. This link expires{" "}
            <Time at={results.expiresAt} />.
          </p>
        </div>
        {results.allowCopy && <CopyButton token={token} />}
      </header>
      {results.status === "completed" && (
        <ResultFiles
          outputs={outputs}
          steps={results.nodes}
          openReport={({ reportUrl }) =>
            reportUrl && (
              <a href={reportUrl} target="_blank" rel="noreferrer" className={buttonClass("secondary", "sm")}>
                <FileText className="size-4" aria-hidden /> Open report
              </a>
            )
          }
        />
      )}
      <section className="mb-6">
        <h2 className="mb-2">Steps</h2>
        <div className="mb-3 rounded-xl border bg-surface p-2">
          <GraphPreview
            label={`The ${results.nodes.length} steps of ${results.workflowName}`}
            className="mx-auto max-h-52 w-full"
            definition={drawn(results)}
          />
        </div>
        <Table
          label="Steps"
          head={
            <>
              <Th>Step</Th>
              <Th>State</Th>
              <Th className="text-right">Duration</Th>
            </>
          }
        >
          {results.nodes.map((node) => (
            <tr key={node.id}>
              <Td className="font-medium break-words">{node.name || node.id}</Td>
              <Td>{looks[node.status].word}</Td>
              <Td className="tabular text-right">{node.durationMs === null ? "–" : duration(node.durationMs)}</Td>
            </tr>
          ))}
        </Table>
      </section>
      {values.length > 0 && (
        <section className="mb-6">
          <h2 className="mb-2">Parameters</h2>
          <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1 text-sm">
            {values.map(([name, value]) => (
              <div key={name} className="contents">
                <dt className="font-medium">{name}</dt>
                <dd className="break-all">{typeof value === "string" ? value : JSON.stringify(value)}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      <section>
        <h2 className="mb-2">Outputs</h2>
        {outputs.length === 0 ? (
          <p className="text-sm text-muted">This run has no outputs to show.</p>
        ) : (
          <OutputsTable outputs={outputs} steps={results.nodes} />
        )}
      </section>
    </>
  );
}

/** drawn is the graph as far as it is shared. */
function drawn({ nodes, edges }: Results): Definition {
  return {
    version: 1,
    nodes: nodes.map(({ id, name, x, y }) => ({ id, name, type: "task", position: { x, y } })),
    edges: edges.map(({ source, target }, index) => ({ id: `e${index}`, source, target })),
  } as Definition;
}

function CopyButton({ token }: { token: string }) {
  const api = useApi();
  const me = useMaybeMe();
  const copy = useMutation({ mutationFn: () => ask(api.POST("/api/results/copy", { body: { token } })) });
  if (copy.data) {
    return (
      <Link to="/workflows/$workflowId" params={{ workflowId: copy.data.id }} className={buttonClass("primary")}>
        Open the copy
      </Link>
    );
  }
  if (!me) {
    return (
      <a href="/sign-in" className={buttonClass("secondary")}>
        Sign in to copy the workflow
      </a>
    );
  }
  return (
    <Button icon={<Copy className="size-4" aria-hidden />} busy={copy.isPending} onClick={() => copy.mutate()}>
      Copy to my team
    </Button>
  );
}
