import { useParams } from "@tanstack/react-router";
import { useTitle } from "../app/Page.tsx";

/** RunPage follows one run, live while it runs. */
export function RunPage() {
  const { runId } = useParams({ from: "/inside/runs/$runId" });
  useTitle("Run");
  return (
    <div className="p-8">
      <h1>Run</h1>
      <p className="text-muted">{runId}</p>
    </div>
  );
}
