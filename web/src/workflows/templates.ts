// The examples of the repository, as templates: built into the app, loaded
// when the gallery is opened.
import { isRecord } from "../api/failure.ts";
import type { Definition } from "./queries.ts";

export interface Template {
  slug: string;
  name: string;
  description: string;
  definition: Definition;
}

const graphs = import.meta.glob<unknown>("../../../examples/*/workflow.json", { import: "default" });
const readmes = import.meta.glob<string>("../../../examples/*/README.md", { query: "?raw", import: "default" });

export async function loadTemplates(): Promise<Template[]> {
  const loaded = await Promise.all(
    Object.entries(graphs).map(async ([path, load]) => {
      const slug = path.split("/").at(-2) ?? "";
      return readTemplate(slug, await load(), (await readmes[path.replace("workflow.json", "README.md")]?.()) ?? "");
    }),
  );
  return loaded.filter((each) => each !== null);
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
  };
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
