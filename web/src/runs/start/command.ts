// Commands that start a run from a terminal.
import type { Schemas } from "../../api/client.ts";

type StartRun = Schemas["StartRun"];

/** quoted is text as one shell word. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const joined = (words: string[]): string => words.join(" \\\n  ");

/** curl is the curl command that starts a run. */
export function curl(origin: string, run: StartRun): string {
  return joined([
    `curl ${quoted(`${origin}/api/runs`)}`,
    '-H "Authorization: Bearer $MILLRACE_TOKEN"',
    "-H 'Content-Type: application/json'",
    `-d ${quoted(JSON.stringify(run))}`,
  ]);
}

/** millrace is the CLI command that starts a run and watches it. */
export function millrace(
  {
    workflowId,
    parameters,
    inputs,
    compute,
    resourceProfile,
    executor,
    name,
    note,
    tags,
    maxCredits,
    outputTo,
  }: StartRun,
  vary: Record<string, unknown[]> = {},
): string {
  const given = Object.entries(inputs ?? {}).flatMap(([name, list]) =>
    [list].flat().map((input) => [name, input] as const),
  );
  const connections = new Set(
    given.flatMap(([, input]) => (typeof input === "string" ? [] : (input.connection ?? []))),
  );
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return joined([
    `millrace run ${quoted(workflowId)}${Object.keys(vary).length > 0 ? "" : " --watch"}`,
    ...Object.entries(vary).map(([name, values]) => `--vary ${quoted(`${name}=${values.map(text).join(",")}`)}`),
    ...Object.entries(parameters ?? {}).map(([name, value]) => `-p ${quoted(`${name}=${text(value)}`)}`),
    ...given.map(([name, input]) => `-i ${quoted(`${name}=${typeof input === "string" ? input : input.url}`)}`),
    ...[...connections].map((id) => `--connection ${quoted(id)}`),
    ...(compute ? [`--compute ${compute.vcpu}x${compute.ramGb}`] : []),
    ...(resourceProfile === "gpu" ? ["--gpu"] : []),
    ...(executor ? [`--executor ${quoted(executor)}`] : []),
    ...(name ? [`--name ${quoted(name)}`] : []),
    ...(note ? [`--note ${quoted(note)}`] : []),
    ...(tags ?? []).map((tag) => `--tag ${quoted(tag)}`),
    ...(outputTo ? [`--output-to ${quoted(outputTo.url)} --output-connection ${quoted(outputTo.connection)}`] : []),
    ...(maxCredits ? [`--max-credits ${maxCredits}`] : []),
  ]);
}
