// The examples of the repository, as templates: built into the app, loaded
// when the gallery is opened.
import { queryOptions } from "@tanstack/react-query";
import { isRecord } from "../api/failure.ts";
import type { Definition } from "./queries.ts";

export interface Template {
  slug: string;
  name: string;
  description: string;
  definition: Definition;
  /** Sample files, by the input that they are for. */
  samples: Record<string, Sample[]>;
}

export interface Sample {
  name: string;
  /** Where the app itself keeps it. */
  url: string;
}

export const templatesQuery = queryOptions({
  queryKey: ["templates"],
  queryFn: loadTemplates,
  staleTime: Number.POSITIVE_INFINITY,
});

export async function loadTemplates(): Promise<Template[]> {
  const { graphs, readmes, outcomes, sampleUrls, list } = await import("./examples.ts");
  const templates = Object.entries(graphs).flatMap(([path, graph]) => {
    const slug = path.split("/").at(-2) ?? "";
    const beside = (name: string) => path.replace("workflow.json", name);
    const template = readTemplate(slug, graph, readmes[beside("README.md")] ?? "");
    if (!template) return [];
    for (const [input, names] of Object.entries(sampleNames(outcomes[beside("expect.json")]))) {
      template.samples[input] = names.flatMap((name) => {
        const url = sampleUrls[beside(`inputs/${name}`)];
        return url ? [{ name, url }] : [];
      });
    }
    return [template];
  });
  // In the order in which their own list presents them.
  return templates.toSorted((a, b) => list.indexOf(`(${a.slug}/)`) - list.indexOf(`(${b.slug}/)`));
}

/** readTemplate joins a definition with what its README says first. */
export function readTemplate(slug: string, graph: unknown, readme: string): Template | null {
  if (!isRecord(graph)) return null;
  const definition = isRecord(graph.definition) ? graph.definition : graph;
  if (definition.version !== 1) return null;
  const title = /^#\s+(.+)$/m.exec(readme)?.[1];
  const paragraph = readme
    .split(/\n\s*\n/)
    .map((block) => block.trim())
    .find((block) => block && !/^[#|`<!-]/.test(block));
  return {
    slug,
    name: text(graph.name) ?? title ?? slug,
    description: text(graph.description) ?? paragraph?.replaceAll(/\s+/g, " ") ?? "",
    definition: definition as Definition,
    samples: {},
  };
}

/** sampleNames is which sample files an example's expected run takes, by input. */
export function sampleNames(outcome: unknown): Record<string, string[]> {
  const inputs = isRecord(outcome) && isRecord(outcome.inputs) ? outcome.inputs : {};
  return Object.fromEntries(
    Object.entries(inputs).map(([input, names]) => [
      input,
      [names].flat().filter((name): name is string => typeof name === "string"),
    ]),
  );
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
