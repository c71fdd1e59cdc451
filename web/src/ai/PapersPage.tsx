import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { FileText, FileUp, Quote, ScanText, Search, Workflow } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { ask } from "../api/client.ts";
import { isFailure } from "../api/failure.ts";
import { apiOf, useApi } from "../api/team.ts";
import { creditsQuery } from "../billing/queries.ts";
import { useMaybeMe } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Elsewhere } from "../page/Elsewhere.tsx";
import { Page, Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { DropZone } from "../ui/DropZone.tsx";
import { Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { plural } from "../ui/format.ts";
import { Notice } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Progress } from "../ui/Progress.tsx";
import { Time } from "../ui/Time.tsx";
import { AnalysisView } from "./AnalysisView.tsx";
import { type Analysis, analyze, type Question, type Progress as Stage } from "./analysis.ts";
import { readDoi } from "./doi.ts";
import { keep, recall } from "./kept.ts";

const largest = 20 * 2 ** 20;

/** PapersPage reads a paper: from its DOI or its PDF to methods, evidence and a workflow. It needs no account. */
export function PapersPage() {
  const api = useApi();
  const search = useSearch({ from: "/either/papers" });
  const navigate = useNavigate({ from: "/papers" });
  const me = useMaybeMe();
  const client = useQueryClient();
  const [text, setText] = useState(search.doi ?? "");
  const [stage, setStage] = useState<Stage | null>(null);
  const stop = useRef<AbortController | null>(null);
  const doi = readDoi(text);

  const study = useMutation({
    mutationFn: async (question: Question): Promise<Analysis> => {
      stop.current?.abort();
      stop.current = new AbortController();
      setStage(null);
      return analyze(api, question, setStage, stop.current.signal);
    },
    onSuccess: (analysis) => {
      keep(analysis);
      void navigate({ search: { id: analysis.analysisId, ...(analysis.doi && { doi: analysis.doi }) }, replace: true });
      void client.invalidateQueries({ queryKey: ["analyses"] });
      void client.invalidateQueries({ queryKey: ["credits"] });
    },
    meta: { shown: true },
  });
  useEffect(() => () => stop.current?.abort(), []);

  const earlier = useQuery({
    queryKey: ["analysis", search.id],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/ai/status", { params: { query: { id: search.id ?? "" } } })),
    enabled: Boolean(search.id) && me !== null && study.data?.analysisId !== search.id && !recall(search.id),
    staleTime: 60_000,
  });
  const analysis: Analysis | null =
    (study.data?.analysisId === search.id ? study.data : null) ?? recall(search.id) ?? earlier.data ?? null;
  const closed = isFailure(study.error, "closed_access");
  const stopped = stop.current?.signal.aborted === true;

  const upload = ([pdf]: File[]) => {
    if (pdf) study.mutate({ pdf, ...(doi && { doi }) });
  };

  return (
    <Page
      title="Papers"
      intro="Turn a published method into a workflow: its steps, tools and data, with the passages they come from."
    >
      <Form className="mb-3 flex flex-wrap items-start gap-2" onSubmit={() => doi && study.mutate({ doi })}>
        <Field
          label="DOI of the paper"
          className="min-w-64 flex-1"
          error={text.trim() && !doi ? "Not a DOI. Example: 10.1038/nature12373" : null}
        >
          <Input
            value={text}
            onChange={(event) => setText(event.target.value)}
            placeholder="10.1038/nature12373 or a link"
            autoComplete="off"
            spellCheck={false}
          />
        </Field>
        <Button
          type="submit"
          look="primary"
          className="mt-6"
          icon={<Search className="size-4" aria-hidden />}
          disabledReason={doi ? null : "Enter a DOI first."}
          busy={study.isPending}
        >
          Analyze
        </Button>
      </Form>
      <Quota signedIn={me !== null} />

      <div className="my-5 space-y-4">
        {study.isPending && <Working stage={stage} cancel={() => stop.current?.abort()} />}
        {earlier.error && search.id && (
          <Elsewhere id={search.id}>
            <Problem title="Couldn't open the analysis" error={earlier.error} />
          </Elsewhere>
        )}
        {closed && (
          <Notice tone="info" title="No open-access copy of this paper">
            If you have the PDF, drop it here. Only you, or your team, will see the analysis.
          </Notice>
        )}
        {study.error && !closed && !stopped && (
          <Problem
            title={study.variables?.pdf ? "Analysis failed" : "DOI lookup failed"}
            error={study.error}
            retry={() => study.variables && study.mutate(study.variables)}
          />
        )}
        {(closed || (!analysis && !study.isPending)) && (
          <DropZone
            accept="application/pdf,.pdf"
            multiple={false}
            busy={study.isPending}
            icon={<FileUp />}
            onFiles={upload}
          >
            Drop a PDF here, up to {largest / 2 ** 20} MB
          </DropZone>
        )}
        {!analysis && !study.isPending && !study.error && <WhatYouGet />}
        {analysis && !study.isPending && <AnalysisView key={analysis.analysisId} analysis={analysis} />}
      </div>
      {me && <Earlier current={search.id} />}
    </Page>
  );
}

const gains = [
  [ScanText, "Methods, step by step", "A summary, and each step with its tools and data."],
  [Quote, "Quotes and pages", "Each step quotes the paper and its page, so you can check it."],
  [Workflow, "A workflow to start from", "A draft of the same steps to open on the canvas and complete."],
] as const;

function WhatYouGet() {
  return (
    <ul className="grid gap-3 md:grid-cols-3">
      {gains.map(([Icon, title, text]) => (
        <li key={title} className="rounded-xl border bg-surface p-4">
          <Icon className="mb-2 size-5 text-accent" aria-hidden />
          <h2 className="text-sm">{title}</h2>
          <p className="mt-0.5 text-sm text-muted">{text}</p>
        </li>
      ))}
    </ul>
  );
}

function Working({ stage, cancel }: { stage: Stage | null; cancel: () => void }) {
  return (
    <div className="rounded-xl border bg-surface p-5">
      <p role="status" aria-live="polite" className="mb-2 text-sm font-medium">
        {stage?.message || "Looking up the paper…"}
      </p>
      <Progress value={stage ? stage.percent : null} label="Analysis" />
      <Button size="sm" className="mt-3" onClick={cancel}>
        Stop waiting
      </Button>
    </div>
  );
}

function Quota({ signedIn }: { signedIn: boolean }) {
  const credits = useQuery({ ...creditsQuery, enabled: signedIn });
  const rest = credits.data?.aiAnalysis.remaining;
  return (
    <p className="text-[13px] text-muted">
      {signedIn
        ? rest !== undefined && `${plural(rest, "analysis", "analyses")} left today. `
        : "Free without an account, with a daily limit. "}
      Resets at 00:00 UTC.
    </p>
  );
}

function Earlier({ current }: { current: string | undefined }) {
  const analyses = useQuery({
    queryKey: ["analyses"],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/ai/analyses")),
  });
  return (
    <Section title="Your team's analyses">
      <Answer query={analyses} rows={2}>
        {(list) =>
          list.length === 0 ? (
            <p className="text-sm text-muted">No analyses yet.</p>
          ) : (
            <ul className="divide-y rounded-lg border bg-surface">
              {list.map((each) => (
                <li key={each.analysisId}>
                  <Link
                    to="/papers"
                    search={{ id: each.analysisId, ...(each.doi && { doi: each.doi }) }}
                    className="flex items-center gap-3 px-4 py-2.5 text-sm hover:bg-sunken/60"
                    aria-current={each.analysisId === current ? "true" : undefined}
                  >
                    <FileText className="size-4 shrink-0 text-muted" aria-hidden />
                    <span className="min-w-0 flex-1 truncate">{each.title ?? each.doi ?? "Uploaded PDF"}</span>
                    {each.status !== "completed" && (
                      <Pill tone={each.status === "failed" ? "danger" : "info"}>{each.status}</Pill>
                    )}
                    <span className="text-[13px] text-muted">
                      <Time at={each.createdAt} />
                    </span>
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </Section>
  );
}
