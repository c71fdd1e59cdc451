// Where the outputs of a run are copied to.
import type { Schemas } from "../../api/client.ts";

type Bucket = Pick<Schemas["Connection"], "bucket" | "prefix">;

/** firstTarget is a folder of a bucket that each run has for itself. */
export function firstTarget({ bucket, prefix }: Bucket): string {
  return `s3://${bucket}/${prefix ?? ""}{runId}/`;
}

/** targetProblem says what is wrong with a target folder, or null. */
export function targetProblem(url: string, { bucket, prefix }: Bucket): string | null {
  const whole = `s3://${bucket}/${prefix ?? ""}`;
  if (!url.startsWith(whole)) return `This connection only reaches addresses that start with ${whole}.`;
  if (!url.endsWith("/")) return "End the folder with a slash.";
  return null;
}

/** sameTarget is the target of a run for its repetition, with {runId} in place of the first run's id. */
export function sameTarget({ id, outputTo }: Pick<Schemas["Run"], "id" | "outputTo">) {
  if (!outputTo) return undefined;
  return { url: outputTo.url.replaceAll(id, "{runId}"), connection: outputTo.connection };
}
