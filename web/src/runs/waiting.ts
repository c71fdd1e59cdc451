import { bytes, plural } from "../ui/format.ts";
import type { Run } from "./queries.ts";

/** waitingText says why a queued run has not started; null for any other run. */
export function waitingText({ status, waiting }: Pick<Run, "status" | "waiting">): string | null {
  if (status !== "queued" || !waiting) return null;
  const { reason, message, ahead, fetching } = waiting;
  const far = fetching ? ` ${bytes(fetching.fetchedBytes)} of ${bytes(fetching.totalBytes)} fetched.` : "";
  // The message for the reason "turn" contains the number already.
  const first = reason === "turn" || ahead === 0 ? "" : ` ${plural(ahead, "run is", "runs are")} before it.`;
  return `Waiting: ${message}${far}${first}`;
}
