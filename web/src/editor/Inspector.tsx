import { Maximize2 } from "lucide-react";
import { lazy, Suspense, useEffect, useId, useState } from "react";
import { expressionNames } from "../definition/completion.ts";
import type { GraphNode } from "../definition/model.ts";
import { freeName } from "../definition/names.ts";
import { stepsBefore } from "../definition/order.ts";
import { Button, IconButton } from "../ui/Button.tsx";
import { changed } from "../ui/changed.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { Checkbox, Field, Select } from "../ui/Field.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { type Action, type ActionName, actions as table, whyNot } from "./actions/actions.ts";
import { useCanEdit, useEditor, useFindingsOf, useGraph, useWorkspace } from "./context.ts";
import { DraftArea, DraftInput, numberOf, RemoveButton, Rows, refuseName, refuseNumber, Small } from "./fields.tsx";
import { Marked, WithFindings } from "./Marked.tsx";
import { NodePackages } from "./NodePackages.tsx";
import { NodeSecrets } from "./NodeSecrets.tsx";
import { PortsEditor } from "./PortsEditor.tsx";
import { untilLoaded } from "./untilLoaded.ts";

const CommandEditor = lazy(() => untilLoaded(() => import("./CommandEditor.tsx")));
// Without the server no step can be tested, and everything else must still be editable.
const TestStep = lazy(() =>
  import("../runs/start/TestStep.tsx").then(
    ({ TestStep }) => ({ default: TestStep }),
    () => ({ default: () => <></> }),
  ),
);

/** Inspector edits the selected step. */
export function Inspector({
  stepKey,
  node,
  workflowId,
}: {
  stepKey: string;
  node: GraphNode;
  workflowId: string | null;
}) {
  const graph = useGraph();
  const { session } = useEditor();
  const locked = !useCanEdit();
  const findings = useFindingsOf(node.id);
  const { document } = graph;
  const set = (field: string, value: unknown) => document.setField(stepKey, field, value);
  if (node.type === "note") {
    return (
      <div className="space-y-4">
        <WithFindings findings={findings}>
          <Marked field="text">
            <Field label="Note">
              <DraftArea rows={8} disabled={locked} value={node.text ?? ""} onKeep={(text) => set("text", text)} />
            </Field>
          </Marked>
        </WithFindings>
        <StepActions />
      </div>
    );
  }
  const before = () => [...stepsBefore(stepKey, document.links())].map((key) => document.idOf(key)).toSorted();
  return (
    <div className="space-y-5">
      <WithFindings findings={findings}>
        <Marked field="name">
          <Field label="Name">
            <DraftInput
              disabled={locked}
              maxLength={200}
              placeholder={node.id}
              value={node.name ?? ""}
              onKeep={(name) => set("name", name || undefined)}
            />
          </Field>
        </Marked>
        <Marked field="command">
          <CommandField stepKey={stepKey} node={node} locked={locked} />
        </Marked>
        {workflowId && (
          <Suspense fallback={null}>
            <TestStep workflowId={workflowId} node={node.id} before={before()} flush={() => session.flush()} />
          </Suspense>
        )}
        <div className="grid grid-cols-2 gap-3">
          <Marked field="interpreter">
            <Field label="Interpreter">
              <Select
                disabled={locked}
                value={node.interpreter ?? "bash"}
                onChange={(event) => set("interpreter", event.target.value === "bash" ? undefined : event.target.value)}
              >
                {[...new Set(["bash", "sh", "python3", "Rscript", "perl", "node", node.interpreter ?? "bash"])].map(
                  (each) => (
                    <option key={each}>{each}</option>
                  ),
                )}
              </Select>
            </Field>
          </Marked>
          <Marked field="image">
            <Field label="Image" optional>
              <DraftInput
                disabled={locked}
                placeholder="None (host tools)"
                value={node.image ?? ""}
                onKeep={(image) => set("image", image || undefined)}
              />
            </Field>
          </Marked>
        </div>
        <NodePackages node={node} locked={locked} set={set} />
        <PortsEditor stepKey={stepKey} node={node} locked={locked} />
        <Execution node={node} locked={locked} set={set} />
        <Marked field="env">
          <Environment node={node} locked={locked} set={set} />
        </Marked>
        <Marked field="secrets">
          <NodeSecrets node={node} locked={locked} set={set} />
        </Marked>
        <Marked field="id">
          <Field label="Step ID" hint="Expressions and the API name the step by it.">
            <DraftInput
              className="font-mono"
              disabled={locked}
              whole
              value={node.id}
              refuse={refuseName((id) => id !== node.id && document.keyOf(id) !== null)}
              onKeep={(id) => session.rename({ kind: "step", name: node.id }, id)}
            />
          </Field>
        </Marked>
        <StepActions />
      </WithFindings>
    </div>
  );
}

function CommandField({ stepKey, node, locked }: { stepKey: string; node: GraphNode; locked: boolean }) {
  const { document } = useGraph();
  const [large, setLarge] = useState(false);
  const text = document.text(stepKey, "command");
  useEffect(() => {
    if (!text && !locked) document.startText(stepKey, "command");
  }, [document, stepKey, text, locked]);
  const editor = (
    <Suspense fallback={<Skeleton className="h-full" />}>
      <CommandEditor text={text} stepKey={stepKey} language={node.interpreter ?? "bash"} locked={locked} />
    </Suspense>
  );
  return (
    <section aria-label="Command">
      <header className="mb-1 flex items-center justify-between">
        <h3 className="text-sm font-medium">Command</h3>
        <IconButton
          size="sm"
          label="Open in large editor"
          icon={<Maximize2 className="size-4" aria-hidden />}
          onClick={() => setLarge(true)}
        />
      </header>
      <div className="h-56 resize-y overflow-hidden rounded-lg border border-field-line">{!large && editor}</div>
      <p className="mt-1 text-[13px] text-muted">
        {locked ? "Read-only." : "Use $INPUT_name for files, $PARAM_name for parameters, $ITEM for the current item."}
      </p>
      <Dialog wide open={large} onOpenChange={setLarge} title={`Command of ${node.name || node.id}`}>
        <div className="h-[65vh] overflow-hidden rounded-lg border border-field-line">{large && editor}</div>
      </Dialog>
    </section>
  );
}

type Set = (key: string, value: unknown) => void;

/** joined returns an object with some members set, or nothing where none are left. */
function joined(old: object | undefined, change: Record<string, unknown>): Record<string, unknown> | undefined {
  const next = changed<Record<string, unknown>>({ ...old }, change);
  return Object.keys(next).length > 0 ? next : undefined;
}

interface NumberProps {
  field: string;
  label: string;
  value: number | undefined;
  hint: string;
  locked: boolean;
  onKeep: (value: number | undefined) => void;
}

function NumberField({ field, label, value, hint, locked, onKeep }: NumberProps) {
  return (
    <Marked field={field}>
      <Small label={label}>
        <DraftInput
          inputMode="decimal"
          disabled={locked}
          placeholder={hint}
          value={value === undefined ? "" : String(value)}
          refuse={refuseNumber}
          onKeep={(text) => onKeep(numberOf(text))}
        />
      </Small>
    </Marked>
  );
}

interface ExpressionProps {
  field: string;
  label: string;
  value: string | undefined;
  hint: string;
  node: string;
  locked: boolean;
  onKeep: (value: string) => void;
}

/** ExpressionField edits a CEL expression, and suggests what it can name. */
function ExpressionField({ field, label, value, hint, node, locked, onKeep }: ExpressionProps) {
  const { document } = useGraph();
  const list = useId();
  const [names, setNames] = useState<ReturnType<typeof expressionNames>>([]);
  return (
    <Marked field={field}>
      <Small label={label}>
        <DraftInput
          disabled={locked}
          placeholder={hint}
          className="font-mono"
          list={list}
          onFocus={() => setNames(expressionNames(document.definition(), node))}
          value={value ?? ""}
          onKeep={onKeep}
        />
      </Small>
      <datalist id={list}>
        {names.map(({ text, about }) => (
          <option key={text} value={text} label={about} />
        ))}
      </datalist>
    </Marked>
  );
}

function Execution({ node, locked, set }: { node: GraphNode; locked: boolean; set: Set }) {
  const { resources, retries, scatter } = node;
  return (
    <section className="space-y-3">
      <h3 className="text-sm">Execution</h3>
      <div className="grid grid-cols-3 gap-2">
        <NumberField
          field="resources.vcpu"
          label="vCPU"
          value={resources?.vcpu}
          hint="1"
          locked={locked}
          onKeep={(vcpu) => set("resources", joined(resources, { vcpu }))}
        />
        <NumberField
          field="resources.ramGb"
          label="Memory (GB)"
          value={resources?.ramGb}
          hint="Automatic"
          locked={locked}
          onKeep={(ramGb) => set("resources", joined(resources, { ramGb }))}
        />
        <NumberField
          field="resources.gpu"
          label="GPU"
          value={resources?.gpu}
          hint="0"
          locked={locked}
          onKeep={(gpu) => set("resources", joined(resources, { gpu }))}
        />
        <NumberField
          field="retries.max"
          label="Retries"
          value={retries?.max}
          hint="0"
          locked={locked}
          onKeep={(max) => set("retries", joined(retries, { max }))}
        />
        <NumberField
          field="retries.backoffSeconds"
          label="Wait before retry (s)"
          value={retries?.backoffSeconds}
          hint="1"
          locked={locked}
          onKeep={(backoffSeconds) => set("retries", joined(retries, { backoffSeconds }))}
        />
        <NumberField
          field="timeoutSeconds"
          label="Time limit (s)"
          value={node.timeoutSeconds}
          hint="none"
          locked={locked}
          onKeep={(seconds) => set("timeoutSeconds", seconds)}
        />
      </div>
      <ExpressionField
        field="scatter.over"
        label="Run once per item of"
        value={scatter?.over}
        hint="inputs.reads"
        node={node.id}
        locked={locked}
        onKeep={(over) => set("scatter", over ? joined(scatter, { over }) : undefined)}
      />
      {scatter && (
        <div className="w-1/3">
          <NumberField
            field="scatter.maxParallel"
            label="Max parallel"
            value={scatter.maxParallel}
            hint="all"
            locked={locked}
            onKeep={(maxParallel) => set("scatter", joined(scatter, { maxParallel }))}
          />
        </div>
      )}
      <ExpressionField
        field="when"
        label="Run only if"
        value={node.when}
        hint="params.minQuality > 0"
        node={node.id}
        locked={locked}
        onKeep={(when) => set("when", when || undefined)}
      />
      <div className="flex flex-wrap gap-x-5 gap-y-2">
        <Checkbox
          label="Reuse earlier results"
          disabled={locked}
          checked={node.cache === true}
          onChange={(event) => set("cache", event.target.checked || undefined)}
        />
        <Checkbox
          label="Continue if this fails"
          disabled={locked}
          checked={node.allowFailure === true}
          onChange={(event) => set("allowFailure", event.target.checked || undefined)}
        />
      </div>
    </section>
  );
}

function Environment({ node, locked, set }: { node: GraphNode; locked: boolean; set: Set }) {
  const env = node.env ?? {};
  return (
    <Rows
      title="Variables"
      empty="No variables."
      addLabel="Add variable"
      names={Object.keys(env).toSorted()}
      locked={locked}
      onAdd={() => set("env", { ...env, [freeName("NAME", (name) => Object.hasOwn(env, name))]: "" })}
    >
      {(name) => (
        <div className="flex items-center gap-1.5">
          <DraftInput
            aria-label="Variable name"
            className="font-mono"
            disabled={locked}
            value={name}
            refuse={refuseName((next) => next !== name && Object.hasOwn(env, next))}
            onKeep={(next) => {
              const { [name]: value, ...others } = env;
              set("env", { ...others, [next]: value ?? "" });
            }}
          />
          <DraftInput
            aria-label={`Value of ${name}`}
            disabled={locked}
            value={env[name] ?? ""}
            onKeep={(value) => set("env", { ...env, [name]: value })}
          />
          <RemoveButton
            label={`Remove ${name}`}
            locked={locked}
            onClick={() => {
              const { [name]: _, ...others } = env;
              set("env", Object.keys(others).length > 0 ? others : undefined);
            }}
          />
        </div>
      )}
    </Rows>
  );
}

function StepActions() {
  return (
    <div className="flex gap-2 border-t pt-4">
      <StepAction name="duplicate" />
      <StepAction name="remove" />
    </div>
  );
}

function StepAction({ name }: { name: ActionName }) {
  const { actions } = useWorkspace();
  const { icon: Icon, label }: Action = table[name];
  return (
    <Button
      size="sm"
      {...(name === "remove" && { look: "danger-quiet" })}
      disabled={whyNot(name, actions.target()) !== null}
      icon={<Icon className="size-4" aria-hidden />}
      onClick={() => actions.run(name)}
    >
      {label}
    </Button>
  );
}
