// The problems of a definition, by the step and the field that they are about.
import { type Definition, groupBy, type Problem } from "./model.ts";

export interface Finding extends Problem {
  /** A warning does not keep the definition from running. */
  warning: boolean;
  /** What it is about, as people call it: `Trim reads`, `Line from Trim reads to Align`. */
  about: string;
}

/** findingsOf lists problems, then warnings. */
export function findingsOf(
  problems: readonly Problem[],
  warnings: readonly Problem[],
  definition: Definition,
): Finding[] {
  const about = subjectsIn(definition);
  return [
    ...problems.map((each) => ({ ...each, warning: false, about: about(each) })),
    ...warnings.map((each) => ({ ...each, warning: true, about: about(each) })),
  ];
}

/** inWords is what a finding says, after what it is about where the message does not name it. */
export function inWords({ about, message, node }: Finding): string {
  return node === null || message.includes(`"${about}"`) ? message : `${about}: ${message}`;
}

/** Subject is what a problem is about, by ids. */
type Subject = { node?: string | null; edge?: string | null };

/** subjectsIn names what problems of a definition are about. */
function subjectsIn({ nodes = [], edges = [] }: Definition): (problem: Subject) => string {
  const steps = new Map(nodes.map(({ id, name }) => [id, name || id]));
  const lines = new Map(edges.map((edge) => [edge.id, edge]));
  const nameOf = (id: string) => steps.get(id) ?? id;
  return ({ node, edge }) => {
    const line = edge ? lines.get(edge) : undefined;
    if (line) return `Line from ${nameOf(line.source)} to ${nameOf(line.target)}`;
    return node ? nameOf(node) : "Workflow";
  };
}

/** byStep lists the findings of each step, by its id. */
export function byStep(findings: readonly Finding[]): Map<string, Finding[]> {
  return groupBy(
    findings.filter((each) => each.node !== null),
    (each) => each.node ?? "",
  );
}

/** faultyLines returns the lines that have problems, by their ids. */
export function faultyLines(findings: readonly Finding[]): ReadonlySet<string> {
  return new Set(findings.flatMap(({ edge, warning }) => (edge && !warning ? [edge] : [])));
}

/** isAt reports whether a finding is about a field or something inside of it. */
export function isAt({ field }: Problem, path: string): boolean {
  return field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);
}
