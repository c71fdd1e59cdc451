import { Copy, Maximize2, Trash2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import type { GraphNode } from "../graph/model.ts";
import { Button, IconButton } from "../ui/Button.tsx";
import { changed } from "../ui/changed.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { Checkbox, Field, Select } from "../ui/Field.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { useEditor, useGraph, useProblemsOf, useSession } from "./context.ts";
import { DraftArea, DraftInput, numberOf, RemoveButton, Rows, refuseName, refuseNumber, Small } from "./fields.tsx";
import { freeName, stepsBefore } from "./graph.ts";
import { NodePackages } from "./NodePackages.tsx";
import { NodeSecrets } from "./NodeSecrets.tsx";
import { PortsEditor } from "./PortsEditor.tsx";

const CommandEditor = lazy(() => import("./CommandEditor.tsx"));
// Without the server no step can be tested, and everything else must still be editable.
const TestStep = lazy(() =>
  import("../runs/TestStep.tsx").then(
    ({ TestStep }) => ({ default: TestStep }),
    () => ({ default: () => <></> }),
  ),
);

/** Inspector edits the chosen step. */
export function Inspector({ node, workflowId }: { node: GraphNode; workflowId: string | null }) {
  const graph = useGraph();
  const { lock, session } = useEditor();
  const locked = !useSession((state) => state.canEdit) || lock !== null;
  const problems = useProblemsOf(node.id);
  const { document } = graph;
  const set = (key: string, value: unknown) => document.setField(node.id, key, value);
  if (node.type === "note") {
    return (
      <div className="space-y-4">
        <Field label="Note">
          <DraftArea rows={8} disabled={locked} value={node.text ?? ""} onKeep={(text) => set("text", text)} />
        </Field>
        <Actions id={node.id} locked={locked} />
      </div>
    );
  }
  return (
    <div className="space-y-5">
      {problems.length > 0 && (
        <Notice tone="warn">
          <ul className="space-y-1">
            {problems.map((problem) => (
              <li key={problem.path + problem.message}>{problem.message}</li>
            ))}
          </ul>
        </Notice>
      )}
      <Field label="Name">
        <DraftInput
          disabled={locked}
          maxLength={200}
          placeholder={node.id}
          value={node.name ?? ""}
          onKeep={(name) => set("name", name || undefined)}
        />
      </Field>
      <CommandField node={node} locked={locked} />
      {workflowId && (
        <Suspense fallback={null}>
          <TestStep
            workflowId={workflowId}
            node={node.id}
            before={stepsBefore(node.id, document.edges())}
            flush={() => session.flush()}
          />
        </Suspense>
      )}
      <div className="grid grid-cols-2 gap-3">
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
        <Field label="Image" optional>
          <DraftInput
            disabled={locked}
            placeholder="None (host tools)"
            value={node.image ?? ""}
            onKeep={(image) => set("image", image || undefined)}
          />
        </Field>
      </div>
      <NodePackages node={node} locked={locked} set={set} />
      <PortsEditor node={node} locked={locked} />
      <Behaviour node={node} locked={locked} set={set} />
      <Environment node={node} locked={locked} set={set} />
      <NodeSecrets node={node} locked={locked} set={set} />
      <p className="text-[13px] text-muted">
        Step ID <code>{node.id}</code>
      </p>
      <Actions id={node.id} locked={locked} />
    </div>
  );
}

function CommandField({ node, locked }: { node: GraphNode; locked: boolean }) {
  const graph = useGraph();
  const [large, setLarge] = useState(false);
  const text = graph.document.command(node.id);
  const editor = (
    <Suspense fallback={<Skeleton className="h-full" />}>
      <CommandEditor key={node.id} text={text} document={graph.document} language={node.interpreter ?? "bash"} />
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

/** joined is an object with some members set, or nothing where none are left. */
function joined(old: object | undefined, change: Record<string, unknown>): Record<string, unknown> | undefined {
  const next = changed<Record<string, unknown>>({ ...old }, change);
  return Object.keys(next).length > 0 ? next : undefined;
}

function Behaviour({ node, locked, set }: { node: GraphNode; locked: boolean; set: Set }) {
  const number = (label: string, value: number | undefined, keep: (value: number | undefined) => void, hint = "") => (
    <Small label={label}>
      <DraftInput
        inputMode="decimal"
        disabled={locked}
        placeholder={hint}
        value={value === undefined ? "" : String(value)}
        refuse={refuseNumber}
        onKeep={(text) => keep(numberOf(text))}
      />
    </Small>
  );
  return (
    <section className="space-y-3">
      <h3 className="text-sm">Execution</h3>
      <div className="grid grid-cols-3 gap-2">
        {number("vCPU", node.resources?.vcpu, (vcpu) => set("resources", joined(node.resources, { vcpu })), "1")}
        {number(
          "Memory (GB)",
          node.resources?.ramGb,
          (ramGb) => set("resources", joined(node.resources, { ramGb })),
          "Automatic",
        )}
        {number("GPU", node.resources?.gpu, (gpu) => set("resources", joined(node.resources, { gpu })), "0")}
        {number("Retries", node.retries?.max, (max) => set("retries", joined(node.retries, { max })), "0")}
        {number(
          "Wait before retry (s)",
          node.retries?.backoffSeconds,
          (backoffSeconds) => set("retries", joined(node.retries, { backoffSeconds })),
          "1",
        )}
        {number("Time limit (s)", node.timeoutSeconds, (seconds) => set("timeoutSeconds", seconds), "none")}
      </div>
      <Small label="Run once per item of">
        <DraftInput
          disabled={locked}
          placeholder="inputs.reads"
          className="font-mono"
          value={node.scatter?.over ?? ""}
          onKeep={(over) => set("scatter", over ? joined(node.scatter, { over }) : undefined)}
        />
      </Small>
      {node.scatter && (
        <div className="w-1/3">
          {number(
            "Max parallel",
            node.scatter.maxParallel,
            (most) => set("scatter", joined(node.scatter, { maxParallel: most })),
            "all",
          )}
        </div>
      )}
      <Small label="Run only if">
        <DraftInput
          disabled={locked}
          placeholder="params.minQuality > 0"
          className="font-mono"
          value={node.when ?? ""}
          onKeep={(when) => set("when", when || undefined)}
        />
      </Small>
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
      onAdd={() => set("env", { ...env, [freeName("NAME", (name) => name in env)]: "" })}
    >
      {(name) => (
        <div className="flex items-center gap-1.5">
          <DraftInput
            aria-label="Variable name"
            className="font-mono"
            disabled={locked}
            value={name}
            refuse={refuseName((next) => next !== name && next in env)}
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

function Actions({ id, locked }: { id: string; locked: boolean }) {
  const graph = useGraph();
  return (
    <div className="flex gap-2 border-t pt-4">
      <Button
        size="sm"
        disabled={locked}
        icon={<Copy className="size-4" aria-hidden />}
        onClick={() => graph.select(graph.document.paste(graph.document.take([id])))}
      >
        Duplicate
      </Button>
      <Button
        size="sm"
        look="danger-quiet"
        disabled={locked}
        icon={<Trash2 className="size-4" aria-hidden />}
        onClick={() => graph.document.remove([id], [])}
      >
        Delete
      </Button>
    </div>
  );
}
