import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ExternalLink, MessageSquare, Quote, TriangleAlert, Workflow } from "lucide-react";
import type { Schemas } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { whyNot } from "../identity/access.ts";
import { useMaybeMe, useMissing } from "../identity/queries.ts";
import { signInAddress } from "../identity/session.ts";
import { Problem } from "../page/Problem.tsx";
import { useGo } from "../page/useGo.ts";
import { Button, buttonClass } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { GraphPreview } from "../workflows/GraphPreview.tsx";
import { createWorkflow } from "../workflows/queries.ts";
import type { Analysis } from "./analysis.ts";

/** AnalysisView is what was found in a paper, with the words it was found in. */
export function AnalysisView({ analysis }: { analysis: Analysis }) {
  const { result } = analysis;
  if (analysis.status === "failed" || !result) {
    return (
      <Notice
        tone={analysis.status === "failed" ? "danger" : "info"}
        title={analysis.status === "failed" ? "The analysis failed" : "Still analyzing"}
      >
        {analysis.error ?? analysis.stage}
      </Notice>
    );
  }
  return (
    <article className="space-y-6">
      <PaperHead paper={result.paper} analysisId={analysis.analysisId} />
      {result.notes.length > 0 && (
        <Notice>
          {result.notes.map((note) => (
            <p key={note}>{note}</p>
          ))}
        </Notice>
      )}
      <div className="grid gap-6 lg:grid-cols-[3fr_2fr]">
        <div className="space-y-6">
          <section>
            <h2 className="mb-1.5">Summary</h2>
            <p className="whitespace-pre-line">{result.summary}</p>
          </section>
          <section>
            <h2 className="mb-1.5">Methods</h2>
            <p className="mb-3 whitespace-pre-line">{result.methodology.overview}</p>
            <ol className="space-y-4">
              {result.methodology.steps.map((step, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: steps never move, and may share a name
                <Step key={at} step={step} number={at + 1} />
              ))}
            </ol>
          </section>
        </div>
        <aside className="space-y-6">
          <Suggestion suggestion={result.workflowSuggestion} paper={result.paper} />
          <Names title="Software" names={result.methodology.software} />
          <Names title="Data" names={result.methodology.datasets} />
        </aside>
      </div>
    </article>
  );
}

function PaperHead({ paper, analysisId }: { paper: Schemas["Paper"]; analysisId: string }) {
  const me = useMaybeMe();
  const noChat = useMissing("chat");
  const where = [paper.journal, paper.year].filter(Boolean).join(", ");
  const authors = paper.authors.map((author) => author.name);
  return (
    <header className="rounded-xl border bg-surface p-5">
      <h2 className="text-lg">{paper.title ?? "Untitled paper"}</h2>
      {authors.length > 0 && (
        <p className="mt-1 text-sm">
          {authors.length > 8 ? `${authors.slice(0, 8).join(", ")} and ${authors.length - 8} more` : authors.join(", ")}
        </p>
      )}
      <p className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-muted">
        {where}
        {paper.citationCount !== null && <span>cited {paper.citationCount} times</span>}
        {paper.openAccess?.isOa && <Pill tone="ok">open access</Pill>}
        {paper.isRetracted && (
          <Pill tone="danger" icon={<TriangleAlert aria-hidden />}>
            retracted
          </Pill>
        )}
        {paper.doi && (
          <a
            href={`https://doi.org/${paper.doi}`}
            target="_blank"
            rel="noreferrer noopener"
            className="inline-flex items-center gap-1 text-accent hover:underline"
          >
            {paper.doi} <ExternalLink className="size-3.5" aria-hidden />
          </a>
        )}
      </p>
      {me && !noChat && (
        <Link to="/chat" search={{ paper: analysisId }} className={`${buttonClass("secondary", "sm")} mt-3`}>
          <MessageSquare className="size-4" aria-hidden /> Ask about this paper
        </Link>
      )}
    </header>
  );
}

function Step({ step, number }: { step: Schemas["MethodologyStep"]; number: number }) {
  return (
    <li className="rounded-lg border bg-surface p-4">
      <h3>
        <span className="mr-2 text-muted">{number}</span>
        {step.name}
      </h3>
      <p className="mt-1 text-sm">{step.description}</p>
      {step.tools.length > 0 && (
        <p className="mt-2 flex flex-wrap gap-1.5">
          {step.tools.map((tool) => (
            <Pill key={tool}>{tool}</Pill>
          ))}
        </p>
      )}
      {step.evidence.map((each) => (
        <blockquote key={each.quote} className="mt-3 flex gap-2 text-[13px] text-muted">
          <Quote className="mt-0.5 size-3.5 shrink-0" aria-hidden />
          <span>
            {each.quote}
            {each.page !== null && each.page !== undefined && (
              <cite className="ml-1.5 not-italic whitespace-nowrap">p. {each.page}</cite>
            )}
          </span>
        </blockquote>
      ))}
    </li>
  );
}

function Names({ title, names }: { title: string; names: string[] }) {
  if (names.length === 0) return null;
  return (
    <section>
      <h2 className="mb-1.5">{title}</h2>
      <ul className="flex flex-wrap gap-1.5">
        {names.map((name) => (
          <li key={name}>
            <Pill className="whitespace-normal!">{name}</Pill>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Suggestion({
  suggestion,
  paper,
}: {
  suggestion: Schemas["WorkflowSuggestion"] | null;
  paper: Schemas["Paper"];
}) {
  const api = useApi();
  const me = useMaybeMe();
  const go = useGo();
  const client = useQueryClient();
  const open = useMutation({
    mutationFn: (from: Schemas["WorkflowSuggestion"]) =>
      createWorkflow(api, {
        name: from.name,
        description: [from.description, paper.doi && `From ${paper.title ?? "a paper"}, doi:${paper.doi}`]
          .filter(Boolean)
          .join("\n\n"),
        definition: from.definition,
      }),
    onSuccess: (workflow) => {
      void client.invalidateQueries({ queryKey: ["workflows"] });
      void go({ to: "/workflows/$workflowId", params: { workflowId: workflow.id } });
    },
    meta: { shown: true },
  });
  if (!suggestion)
    return <Notice title="No workflow suggestion">The paper doesn't name tools that could become steps.</Notice>;
  return (
    <section className="rounded-xl border bg-surface p-4">
      <div className="mb-1 flex items-center justify-between gap-2">
        <h2>Suggested workflow</h2>
        <Pill>{Math.round(suggestion.confidence * 100)}% confidence</Pill>
      </div>
      <p className="text-sm font-medium">{suggestion.name}</p>
      <p className="mb-3 text-sm text-muted">{suggestion.description}</p>
      <div className="mb-4 rounded-lg border bg-bg p-2">
        <GraphPreview
          definition={suggestion.definition}
          label={`The steps of ${suggestion.name}`}
          className="mx-auto h-48 w-full"
        />
      </div>
      {open.error && <Problem title="Couldn't open as workflow" error={open.error} />}
      {me ? (
        <Button
          look="primary"
          className="w-full"
          icon={<Workflow className="size-4" aria-hidden />}
          busy={open.isPending}
          disabledReason={whyNot(me.team.role, "edit workflows")}
          onClick={() => open.mutate(suggestion)}
        >
          Open as workflow
        </Button>
      ) : (
        <a href={signInAddress()} className={`${buttonClass("primary")} w-full`}>
          Sign in to open as workflow
        </a>
      )}
      <p className="mt-2 text-[13px] text-muted">This is a draft: check each command before you run it.</p>
    </section>
  );
}
