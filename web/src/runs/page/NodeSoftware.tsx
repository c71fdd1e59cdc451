import { useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";
import { Answer } from "../../page/Answer.tsx";
import { Button } from "../../ui/Button.tsx";
import { save } from "../../ui/download.ts";
import { plural } from "../../ui/format.ts";

const states = { waiting: "not needed yet", building: "installing", ready: "ready", failed: "failed" };

/** NodeSoftware shows the packages that were installed for a step, with the live log of the installation. */
export default function NodeSoftware({ runId, nodeId }: { runId: string; nodeId: string }) {
  const environment = useQuery({
    queryKey: ["environment", runId, nodeId],
    queryFn: ({ client }) =>
      ask(apiOf(client).GET("/api/runs/{id}/nodes/{nodeId}/environment", { params: { path: { id: runId, nodeId } } })),
    refetchInterval: (query) =>
      query.state.data?.state === "ready" || query.state.data?.state === "failed" ? false : 2000,
  });
  return (
    <details className="mt-3" open={environment.data?.state === "building" || environment.data?.state === "failed"}>
      <summary className="cursor-pointer text-sm">
        Packages{environment.data && ` (${summary(environment.data.state, environment.data.packages.length)})`}
      </summary>
      <Answer query={environment}>
        {({ python, packages, lock, log, error }) => (
          <div className="mt-1 space-y-2 text-[13px]">
            {error && <p className="whitespace-pre-wrap break-words text-danger">{error}</p>}
            {packages.length > 0 && (
              <ul
                aria-label="Installed packages"
                className="max-h-40 overflow-y-auto rounded-md bg-sunken p-2 font-mono text-xs"
              >
                {python && <li>Python {python}</li>}
                {packages.map((each) => (
                  <li key={each.name}>
                    {each.name} {each.version}
                  </li>
                ))}
              </ul>
            )}
            {lock && (
              <Button size="sm" onClick={() => save(`${nodeId}.lock.txt`, lock, "text/plain")}>
                Download lock
              </Button>
            )}
            {log && (
              <pre tabIndex={0} className="max-h-52 overflow-auto rounded-md bg-sunken p-2 text-xs">
                {log}
              </pre>
            )}
          </div>
        )}
      </Answer>
    </details>
  );
}

function summary(state: keyof typeof states, packages: number): string {
  return state === "ready" ? plural(packages, "package") : states[state];
}
