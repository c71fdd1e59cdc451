import { useQuery } from "@tanstack/react-query";
import { bytes } from "../../ui/format.ts";
import { Progress } from "../../ui/Progress.tsx";
import { runQuery } from "../queries.ts";

/** Fetching shows how much of a step's remote inputs has been downloaded. It polls because no event says so. */
export function Fetching({ runId, nodeId }: { runId: string; nodeId: string }) {
  const run = useQuery({ ...runQuery(runId), refetchInterval: 3000 });
  const fetching = run.data?.nodes.find((each) => each.id === nodeId)?.fetching;
  if (!fetching) return null;
  const { fetchedBytes, totalBytes } = fetching;
  return (
    <div className="mt-3 text-[13px]">
      <Progress label="Inputs fetched" value={(fetchedBytes / Math.max(1, totalBytes)) * 100} />
      <p className="mt-1 text-muted">
        Fetching inputs: {bytes(fetchedBytes)} of {bytes(totalBytes)}
      </p>
    </div>
  );
}
