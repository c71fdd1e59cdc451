import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { ask } from "../../api/client.ts";
import { apiOf, useApi } from "../../api/team.ts";
import { whyNot } from "../../identity/access.ts";
import { useMe, useMissing } from "../../identity/queries.ts";
import { Page } from "../../page/Page.tsx";
import { Problem } from "../../page/Problem.tsx";
import { useChange } from "../../page/useChange.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Copy } from "../../ui/Copy.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { TabPanel, Tabs } from "../../ui/Tabs.tsx";
import { type Engine, engineNames, engines, reportingLines } from "./pipelines.ts";

/** PipelinesPage shows the commands that make a pipeline on another machine report here. */
export function PipelinesPage() {
  const search = useSearch({ from: "/inside/runs/pipelines" });
  const set = useChange<typeof search>();
  const engine = search.engine ?? "nextflow";
  const free = useMissing("billing");
  return (
    <Page
      title="Watch a pipeline"
      intro={`Follow a pipeline that runs on your cluster, in a cloud or on your laptop. ${free ? "The" : "It costs no credits, and the"} pipeline doesn't change.`}
      actions={
        <Link to="/runs" className={buttonClass("secondary")}>
          All runs
        </Link>
      }
    >
      <Tabs
        value={engine}
        onChange={(next) => set({ engine: next })}
        label="Engine"
        tabs={engines.map((each) => ({ value: each, label: engineNames[each] }))}
      >
        {engines.map((each) => (
          <TabPanel key={each} value={each} className="max-w-3xl space-y-4 pt-4">
            <Lines engine={each} />
          </TabPanel>
        ))}
      </Tabs>
    </Page>
  );
}

function Lines({ engine }: { engine: Engine }) {
  const api = useApi();
  const me = useMe();
  const client = useQueryClient();
  const make = useMutation({
    mutationFn: () =>
      ask(
        api.POST("/auth/api-tokens", {
          body: { name: `${engineNames[engine]} reports`, scopes: ["report"], expiresInDays: 366, role: "member" },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: ["tokens"] }),
    meta: { shown: true },
  });
  const token = make.data?.token;
  const clients = useQuery({
    queryKey: ["clients"],
    queryFn: ({ client }) => ask(apiOf(client).GET("/clients/index.json")),
    enabled: engine === "snakemake",
  });
  const plugin = clients.data?.find((file) => file.kind === "snakemake");
  const lines = reportingLines(engine, {
    server: window.location.origin,
    token: token ?? "…",
    install: plugin?.install ?? "…",
  });
  return (
    <>
      <ol className="list-decimal space-y-1 pl-5 text-sm">
        <li>Create a token. It can report runs, and nothing else.</li>
        <li>Run these lines where the pipeline runs.</li>
        <li>The run appears under Runs as soon as the pipeline starts.</li>
      </ol>
      {!token && (
        <Button
          look="primary"
          busy={make.isPending}
          disabledReason={whyNot(me.team.role, "start runs")}
          onClick={() => make.mutate()}
        >
          Create token
        </Button>
      )}
      {clients.error && <Problem title="Couldn't load the command that installs the plugin" error={clients.error} />}
      {make.error && <Problem title="Couldn't create the token" error={make.error} />}
      {token && (
        <Notice tone="warn" title="Copy the lines now">
          The token won't be shown again. You can revoke it on your account page.
        </Notice>
      )}
      <div className="flex items-start gap-2 rounded-lg border bg-sunken py-2 pr-1 pl-3">
        <pre className="min-w-0 flex-1 whitespace-pre-wrap break-all text-[13px]">
          <code>{lines}</code>
        </pre>
        <Copy text={lines} label="Copy the lines" />
      </div>
      <p className="text-sm text-muted">
        Other engines can report with two requests:{" "}
        <a className="text-accent underline" href="/help/reported-runs#reporting-from-a-program">
          reporting from a program
        </a>
        .
      </p>
    </>
  );
}
