import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { LayoutTemplate, Play } from "lucide-react";
import { useWhyNot } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Page } from "../page/Page.tsx";
import { Button, buttonClass } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { plural } from "../ui/format.ts";
import { GraphPreview } from "./GraphPreview.tsx";
import { needsFiles } from "./model.ts";
import { type Template, templatesQuery } from "./templates.ts";
import { lacksFiles, useTemplate } from "./useTemplate.ts";

export function TemplatesPage() {
  const templates = useQuery(templatesQuery);
  return (
    <Page title="Templates" intro="Ready-to-run workflows: pick one, run it, then adapt it.">
      <Answer query={templates}>
        {(list) =>
          list.length === 0 ? (
            <Empty
              icon={<LayoutTemplate />}
              title="No templates"
              actions={
                <Link to="/workflows" search={{ create: true }} className={buttonClass("primary")}>
                  New workflow
                </Link>
              }
            >
              This server was built without examples.
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
  const whyNot = useWhyNot();
  const use = useTemplate();
  const steps = (template.definition.nodes ?? []).filter((node) => node.type !== "note").length;
  return (
    <li className="flex flex-col overflow-hidden rounded-xl border bg-surface">
      <div className="border-b bg-bg px-4 py-3">
        <GraphPreview
          definition={template.definition}
          label={`The steps of ${template.name}`}
          className="mx-auto h-36 w-full"
        />
      </div>
      <div className="flex flex-1 flex-col p-4">
        <h2>{template.name}</h2>
        <p className="mt-1 mb-4 line-clamp-4 flex-1 text-sm text-muted">{template.description}</p>
        <p className="mb-3 text-[13px] text-muted">
          {plural(steps, "step")}
          {needsFiles(template.definition) && (lacksFiles(template) ? " · needs files" : " · sample data included")}
        </p>
        <div className="flex flex-wrap gap-2">
          <Button
            look="primary"
            icon={<Play className="size-4" aria-hidden />}
            busy={use.isPending && use.variables.run}
            disabledReason={whyNot("start runs")}
            onClick={() => use.mutate({ template, run: true })}
          >
            Run example
          </Button>
          <Button
            busy={use.isPending && !use.variables.run}
            disabledReason={whyNot("edit workflows")}
            onClick={() => use.mutate({ template, run: false })}
          >
            Open in editor
          </Button>
        </div>
      </div>
    </li>
  );
}
