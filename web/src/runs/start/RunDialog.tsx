import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleCheck, Play, Terminal } from "lucide-react";
import { useRef, useState } from "react";
import { once, type Schemas } from "../../api/client.ts";
import { ApiFailure, isRecord, sentence } from "../../api/failure.ts";
import { useApi } from "../../api/team.ts";
import { findingsOf, inWords } from "../../definition/problems.ts";
import { asText, type Given } from "../../files/addresses.ts";
import { useMissing } from "../../identity/queries.ts";
import { Answer } from "../../page/Answer.tsx";
import { Problem } from "../../page/Problem.tsx";
import { useGo } from "../../page/useGo.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Copy } from "../../ui/Copy.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field, Input } from "../../ui/Field.tsx";
import { Form } from "../../ui/Form.tsx";
import { plural } from "../../ui/format.ts";
import { Notice } from "../../ui/Notice.tsx";
import { readTags } from "../../ui/readTags.ts";
import { Time } from "../../ui/Time.tsx";
import { useSettled } from "../../ui/useSettled.ts";
import { type Definition, workflowQuery } from "../../workflows/queries.ts";
import { curl, millrace } from "./command.ts";
import { EstimateNote, SizePicker, useAvailable, useEstimate } from "./Estimate.tsx";
import { ExecutorPicker } from "./ExecutorPicker.tsx";
import { fieldsOf, fill, startText } from "./form.ts";
import { LabelFields } from "./LabelFields.tsx";
import { noLabel, startLabel } from "./label.ts";
import { OutputTo } from "./OutputTo.tsx";
import { RunForm } from "./RunForm.tsx";
import { SweepFields } from "./SweepFields.tsx";
import { chosenSize, firstSize, type Size, sizeOf } from "./sizes.ts";
import { mostRuns, readVaried, withoutVaried } from "./varied.ts";

export interface RunDialogProps {
  workflowId: string;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  /** Values to begin with: of an earlier run, or from a launch link. */
  parameters?: Record<string, unknown>;
  inputs?: Record<string, Given | Given[]>;
  compute?: Schemas["Compute"];
  outputTo?: Schemas["OutputTarget"] | undefined;
  /** A guest without an account, who starts the run with the link's token. */
  guest?: { token: string; definition: Definition; sizes: Schemas["RunSizes"] };
}

/** RunDialog asks what a run needs and starts it. */
export function RunDialog(props: RunDialogProps) {
  const { open, onOpenChange, guest } = props;
  if (!open) return null;
  return (
    <Dialog open onOpenChange={onOpenChange} wide title="Run" description="Choose inputs and a size.">
      {guest ? <Ask {...props} name="this workflow" definition={guest.definition} /> : <Load {...props} />}
    </Dialog>
  );
}

function Load(props: RunDialogProps) {
  // The definition is read once, when the dialog opens, so that the form does not change while it is filled in.
  const workflow = useQuery({
    queryKey: ["workflow", props.workflowId, "to run"],
    queryFn: ({ client }) => client.fetchQuery({ ...workflowQuery(props.workflowId), staleTime: 0 }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  return (
    <Answer query={workflow} id={props.workflowId}>
      {({ name, definition, problems, warnings }) =>
        problems.length > 0 ? (
          <Notice tone="warn" title={`${name} can't run yet`}>
            {findingsOf(problems, [], definition).map((problem) => (
              <p key={problem.path + problem.message}>{sentence(inWords(problem))}</p>
            ))}
          </Notice>
        ) : (
          <>
            {findingsOf([], warnings, definition).map((warning) => (
              <Notice key={warning.path + warning.message} tone="warn" className="mb-4">
                {sentence(inWords(warning))}
              </Notice>
            ))}
            <Ask {...props} name={name} definition={definition} />
          </>
        )
      }
    </Answer>
  );
}

const lastKey = (workflowId: string) => `millrace.run.${workflowId}`;

/** lastValues are the values of the last run that was started in this tab. */
function lastValues(workflowId: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(lastKey(workflowId)) ?? "{}");
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function Ask(props: RunDialogProps & { name: string; definition: Definition }) {
  const api = useApi();
  const { workflowId, definition, guest, name } = props;
  const go = useGo();
  const client = useQueryClient();
  const [texts, setTexts] = useState(() => {
    const given = props.parameters ?? lastValues(workflowId);
    return Object.fromEntries(fieldsOf(definition).map((field) => [field.name, startText(field, given[field.name])]));
  });
  const [files, setFiles] = useState<Record<string, string[]>>(() =>
    Object.fromEntries(Object.entries(props.inputs ?? {}).map(([key, value]) => [key, [value].flat().map(asText)])),
  );
  const [picked, setSize] = useState<Size | null>(() => (props.compute ? sizeOf(props.compute) : null));
  const [executor, setExecutor] = useState("");
  const available = useAvailable({ guest: guest?.sizes, executor });
  const size = picked ?? firstSize(available);
  const [label, setLabel] = useState(noLabel);
  const [mostCredits, setMostCredits] = useState("");
  const [target, setTarget] = useState<Schemas["OutputTarget"] | null>(props.outputTo ?? null);
  const [varying, setVarying] = useState<Record<string, string>>({});
  const [tried, setTried] = useState(false);
  const fields = fieldsOf(definition);
  const varied = readVaried(fields, varying);
  const sweeps = Object.keys(varying).length > 0;
  const filled = withoutVaried(fill(definition, texts, files), varying);
  const typed = readTags(useSettled(label.tags));
  const free = useMissing("billing");
  const estimate = useEstimate(guest ? null : workflowId, size, { tags: typed.error ? [] : typed.tags, executor });
  const body: Schemas["StartRun"] = {
    workflowId,
    parameters: filled.parameters,
    inputs: filled.inputs,
    ...chosenSize(size),
    ...(executor && { executor }),
    ...startLabel(label),
    ...(mostCredits && !sweeps && { maxCredits: Number(mostCredits) }),
    ...(target && !sweeps && { outputTo: target }),
  };
  // The idempotency key depends on the values: a double click starts one run, changed values start another.
  const key = useRef({ text: "", header: once() });
  const start = useMutation({
    mutationFn: async () => {
      const text = JSON.stringify(sweeps ? { ...body, vary: varied.values } : body);
      if (key.current.text !== text) key.current = { text, header: once() };
      const response = await api.raw(sweeps ? "/api/sweeps" : "/api/runs", {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          ...key.current.header,
          ...(guest && { Authorization: `Bearer ${guest.token}` }),
        },
        ...(guest && { credentials: "omit" as const }),
        body: text,
      });
      return ((await response.json()) as { data: Schemas["StartedRun"] & Schemas["StartedSweep"] }).data;
    },
    onSuccess: ({ runId, sweepId }) => {
      if (guest) return;
      sessionStorage.setItem(lastKey(workflowId), JSON.stringify(filled.parameters));
      void client.invalidateQueries({ queryKey: ["runs"] });
      if (sweepId) void go({ to: "/runs/sweeps/$sweepId", params: { sweepId }, search: {} });
      else void go({ to: "/runs/$runId", params: { runId }, search: {} });
    },
    onError: (error) => {
      if (error instanceof ApiFailure && error.status === 409) key.current = { text: "", header: once() };
    },
    meta: { shown: true },
  });
  if (guest && start.data) return <Accepted run={start.data} />;
  const wrong =
    Object.keys(filled.errors).length + (readTags(label.tags).error ? 1 : 0) + Object.keys(varied.errors).length;
  const blocked =
    varied.runs > mostRuns
      ? `At most ${mostRuns} runs at once.`
      : estimate.data && !estimate.data.allowed
        ? (estimate.data.reason ?? "This size isn't available.")
        : null;
  return (
    <Form
      className="space-y-6"
      onSubmit={() => {
        setTried(true);
        if (wrong === 0 && !blocked && !start.isPending) start.mutate();
      }}
    >
      <RunForm
        definition={definition}
        texts={texts}
        files={files}
        errors={tried ? filled.errors : {}}
        onText={(field, text) => setTexts((old) => ({ ...old, [field]: text }))}
        onFiles={(input, change) => setFiles((old) => ({ ...old, [input]: change(old[input] ?? []) }))}
        guest={guest !== undefined}
      />
      <SizePicker size={size} available={available} onChange={setSize} />
      {!guest && <ExecutorPicker value={executor} onChange={setExecutor} />}
      {!guest && fields.length > 0 && (
        <details className="text-sm">
          <summary className="w-fit cursor-pointer font-medium">
            Run a sweep{sweeps && ` (${plural(varied.runs, "run")})`}
          </summary>
          <div className="mt-3">
            <SweepFields
              fields={fields}
              texts={varying}
              varied={varied}
              onChange={setVarying}
              start={(name) => texts[name] ?? ""}
            />
          </div>
        </details>
      )}
      {!guest && (
        <details className="text-sm">
          <summary className="w-fit cursor-pointer font-medium">Name, note and tags</summary>
          <div className="mt-3">
            <LabelFields label={label} onChange={setLabel} />
          </div>
        </details>
      )}
      {!guest && !sweeps && !free && (
        <Field label="Spending limit (credits)" optional hint="The run is interrupted before it exceeds this limit.">
          <Input
            type="number"
            min={0.000001}
            step="any"
            className="sm:w-48!"
            value={mostCredits}
            onChange={(event) => setMostCredits(event.target.value)}
          />
        </Field>
      )}
      {!guest && !sweeps && (
        <details className="text-sm" open={target !== null}>
          <summary className="w-fit cursor-pointer font-medium">Copy outputs to a bucket</summary>
          <div className="mt-3">
            <OutputTo target={target} onChange={setTarget} tried={tried} />
          </div>
        </details>
      )}
      {!guest && <EstimateNote estimate={estimate} />}
      {!guest && (
        <details className="text-[13px]">
          <summary className="flex w-fit cursor-pointer items-center gap-1.5 text-muted">
            <Terminal className="size-4" aria-hidden /> Show CLI command
          </summary>
          <Command text={millrace(body, varied.values)} words="Copy CLI command" />
          <Command text={curl(location.origin, body)} words="Copy as curl" />
        </details>
      )}
      {start.error && <Problem title="Couldn't start the run" error={start.error} />}
      <footer className="sticky -bottom-4 -mx-5 -mb-4 flex flex-wrap items-center justify-end gap-2 rounded-b-xl border-t bg-surface px-5 py-3">
        <Button onClick={() => props.onOpenChange(false)}>Close</Button>
        <Button
          type="submit"
          look="primary"
          icon={<Play className="size-4" aria-hidden />}
          busy={start.isPending}
          disabledReason={blocked}
        >
          Start {tried && wrong > 0 ? `(${wrong} to fix)` : name === "this workflow" ? "the run" : ""}
        </Button>
      </footer>
    </Form>
  );
}

/** Accepted tells a guest that the run was accepted, and shows the link to its results where they get one. */
function Accepted({ run }: { run: Schemas["StartedRun"] }) {
  const results = run.resultLink;
  return (
    <div className="flex flex-col items-center gap-2 py-8 text-center">
      <CircleCheck className="size-10 text-ok" aria-hidden />
      <h2>Run accepted</h2>
      <p className="max-w-md text-sm text-muted">
        The team that shared this workflow pays for the run and sees its progress. Run ID: <code>{run.runId}</code>.
      </p>
      {results && (
        <section aria-label="Results" className="mt-2 w-full max-w-md space-y-2 text-sm">
          <p>
            Use this link to follow the run and get its outputs. It's shown only once, and expires{" "}
            <Time at={results.expiresAt} />.
          </p>
          <div className="flex items-center gap-2 rounded-lg border bg-sunken py-1 pr-1 pl-3 text-left">
            <code className="min-w-0 flex-1 break-all">{results.link}</code>
            <Copy text={results.link} label="Copy link to results" />
          </div>
          <a href={results.link} target="_blank" rel="noreferrer" className={buttonClass("primary")}>
            Open results
          </a>
        </section>
      )}
    </div>
  );
}

function Command({ text, words }: { text: string; words: string }) {
  return (
    <div className="mt-2">
      <pre tabIndex={0} className="mb-1 max-h-28 overflow-auto rounded-md bg-sunken p-2 text-xs">
        {text}
      </pre>
      <Copy text={text} words={words} />
    </div>
  );
}
