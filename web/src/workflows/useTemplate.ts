import { useMutation } from "@tanstack/react-query";
import { type TeamClient, useTeam } from "../api/team.ts";
import { useGo } from "../page/useGo.ts";
import { needsValues } from "./model.ts";
import { createWorkflow, startRun } from "./queries.ts";
import { type Template, templatesQuery } from "./templates.ts";

/** lacksFiles tells whether a template asks for files that it does not bring. */
export function lacksFiles({ definition, samples }: Template): boolean {
  return Object.entries(definition.inputs ?? {}).some(
    ([name, input]) => input.required !== false && !samples[name]?.length,
  );
}

/** useTemplate makes a workflow of a template, runs it if wanted and possible, and goes there. */
export function useTemplate() {
  const apply = useApply();
  return useMutation({
    mutationFn: ({ template, run }: { template: Template; run: boolean }) => apply(template, run),
  });
}

/** useFirstTemplate runs the first template. The templates load only then. */
export function useFirstTemplate() {
  const team = useTeam();
  const apply = useApply();
  return useMutation({
    mutationFn: async () => {
      const [template] = await team.fetchQuery(templatesQuery);
      if (!template) throw new Error("This build has no templates.");
      return apply(template, true);
    },
  });
}

function useApply() {
  const team = useTeam();
  const go = useGo();
  return async (template: Template, run: boolean) => {
    const workflow = await createWorkflow(team.api, template);
    void team.invalidateQueries({ queryKey: ["workflows"] });
    if (!run || lacksFiles(template) || needsValues(template.definition)) {
      const search = run ? { run: true as const } : {};
      return go({ to: "/workflows/$workflowId", params: { workflowId: workflow.id }, search });
    }
    const { runId } = await startRun(team.api, {
      workflowId: workflow.id,
      inputs: await uploadSamples(team, template),
    });
    return go({ to: "/runs/$runId", params: { runId } });
  };
}

/** uploadSamples makes the template's sample files the team's own, and gives what a run takes. */
async function uploadSamples(
  team: TeamClient,
  { samples, definition }: Template,
): Promise<Record<string, string | string[]>> {
  const { uploads } = await import("../files/uploads.ts");
  const inputs: Record<string, string | string[]> = {};
  for (const [input, files] of Object.entries(samples)) {
    const contents = await Promise.all(
      files.map(async ({ name, url }) => new File([await (await fetch(url)).blob()], name, { type: "text/plain" })),
    );
    const ended = await Promise.all(uploads.add(team, contents));
    const failed = ended.find((upload) => !upload.key);
    if (failed) throw new Error(failed.error ?? `${failed.file.name} was not uploaded`);
    const keys = ended.flatMap((upload) => upload.key ?? []);
    inputs[input] = definition.inputs?.[input]?.type === "files" ? keys : (keys[0] ?? "");
  }
  uploads.clear();
  return inputs;
}
