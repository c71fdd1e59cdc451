import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { LayoutTemplate, Play } from "lucide-react";
import { Answer } from "../app/Answer.tsx";
import { Page } from "../app/Page.tsx";
import { uploads } from "../files/uploads.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Button, buttonClass } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { plural } from "../ui/format.ts";
import { GraphPreview } from "./GraphPreview.tsx";
import { needsFiles, needsValues } from "./model.ts";
import { createWorkflow, startRun } from "./queries.ts";
import { loadTemplates, type Template } from "./templates.ts";

export function TemplatesPage() {
  const templates = useQuery({ queryKey: ["templates"], queryFn: loadTemplates, staleTime: Number.POSITIVE_INFINITY });
  return (
    <Page title="Templates" intro="Workflows that work as they are: take one, run it, then make it yours.">
      <Answer query={templates}>
        {(list) =>
          list.length === 0 ? (
            <Empty
              icon={<LayoutTemplate />}
              title="This build carries no templates"
              actions={
                <Link to="/workflows" search={{ create: true }} className={buttonClass("primary")}>
                  New workflow
                </Link>
              }
            >
              They come from the examples folder when the app is built.
            </Empty>
          ) : (
            <ul className="grid gap-4 md:grid-cols-2 xl:grid-cols-3">
              {list.map((template) => (
                <TemplateCard key={template.slug} template={template} />
              ))}
            </ul>
          )
        }
      </Answer>
    </Page>
  );
}

function TemplateCard({ template }: { template: Template }) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const whyNot = useWhyNot();
  const missing = Object.entries(template.definition.inputs ?? {}).some(
    ([name, input]) => input.required !== false && !template.samples[name]?.length,
  );
  const asks = missing || needsValues(template.definition);
  const use = useMutation({
    mutationFn: async (run: boolean) => {
      const workflow = await createWorkflow(template);
      void client.invalidateQueries({ queryKey: ["workflows"] });
      if (run && !asks) {
        const { runId } = await startRun({ workflowId: workflow.id, inputs: await uploadSamples(template) });
        return navigate({ to: "/runs/$runId", params: { runId } });
      }
      return navigate({
        to: "/workflows/$workflowId",
        params: { workflowId: workflow.id },
        search: run ? { run: true } : {},
      });
    },
  });
  const steps = (template.definition.nodes ?? []).filter((node) => node.type !== "note").length;
  return (
    <li className="flex flex-col overflow-hidden rounded-xl border bg-surface">
      <div className="border-b bg-bg px-4 py-3">
        <GraphPreview
          definition={template.definition}
          label={`The steps of ${template.name}`}
          className="h-36 w-full"
        />
      </div>
      <div className="flex flex-1 flex-col p-4">
        <h2>{template.name}</h2>
        <p className="mt-1 mb-4 line-clamp-4 flex-1 text-sm text-muted">{template.description}</p>
        <p className="mb-3 text-[13px] text-muted">
          {plural(steps, "step")}
          {needsFiles(template.definition) && (missing ? " · asks for files" : " · sample data included")}
        </p>
        <div className="flex flex-wrap gap-2">
          <Button
            look="primary"
            icon={<Play className="size-4" aria-hidden />}
            busy={use.isPending && use.variables}
            disabledReason={whyNot("start runs")}
            onClick={() => use.mutate(true)}
          >
            Use and run
          </Button>
          <Button
            busy={use.isPending && !use.variables}
            disabledReason={whyNot("edit workflows")}
            onClick={() => use.mutate(false)}
          >
            Use
          </Button>
        </div>
      </div>
    </li>
  );
}

/** uploadSamples makes the template's sample files the team's own, and gives what a run takes. */
async function uploadSamples({ samples, definition }: Template): Promise<Record<string, string | string[]>> {
  const inputs: Record<string, string | string[]> = {};
  for (const [input, files] of Object.entries(samples)) {
    const contents = await Promise.all(
      files.map(async ({ name, url }) => new File([await (await fetch(url)).blob()], name, { type: "text/plain" })),
    );
    const ended = await Promise.all(uploads.add(contents));
    const failed = ended.find((upload) => !upload.key);
    if (failed) throw new Error(failed.error ?? `${failed.file.name} was not uploaded`);
    const keys = ended.flatMap((upload) => upload.key ?? []);
    inputs[input] = definition.inputs?.[input]?.type === "files" ? keys : (keys[0] ?? "");
  }
  uploads.clear();
  return inputs;
}
