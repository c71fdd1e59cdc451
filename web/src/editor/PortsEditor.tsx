import { X } from "lucide-react";
import type { GraphNode } from "../definition/model.ts";
import { freeName } from "../definition/names.ts";
import { stepsAfter } from "../definition/order.ts";
import { type Line, type Port, portsOf } from "../definition/ports.ts";
import type { FlowNode } from "../graph/flow.ts";
import { IconButton } from "../ui/Button.tsx";
import { changed } from "../ui/changed.ts";
import { Checkbox, Select } from "../ui/Field.tsx";
import { useEditor, useGraph, useWorkspace } from "./context.ts";
import type { Side } from "./document/document.ts";
import { DraftInput, NameRow, Rows, Small } from "./fields.tsx";
import { Marked, useMark } from "./Marked.tsx";

interface StepProps {
  stepKey: string;
  node: GraphNode;
  locked: boolean;
}

interface PortsProps extends StepProps {
  ports: Port[];
  lines: Line[];
}

/** PortsEditor edits what goes into a step and what comes out, with the lines that begin or end there. */
export function PortsEditor({ stepKey, node, locked }: StepProps) {
  const { document } = useGraph();
  const lines = document.links().filter((link) => link.source === stepKey || link.target === stepKey);
  const ports = portsOf(node, lines, stepKey);
  const step = { stepKey, node, locked };
  return (
    <>
      <Inputs {...step} ports={ports.inputs} lines={lines} />
      <Outputs {...step} ports={ports.outputs} lines={lines} />
      <Ordering stepKey={stepKey} lines={lines.filter((line) => !line.sourceHandle)} locked={locked} />
    </>
  );
}

function Inputs({ stepKey, node, ports, lines: all, locked }: PortsProps) {
  const { document } = useGraph();
  return (
    <Rows
      title="Inputs"
      empty="Connect a step to this one, or add an input."
      addLabel="Add an input"
      names={ports.map((port) => port.name)}
      locked={locked}
      onAdd={() => {
        const name = freeName("input", (each) => ports.some((port) => port.name === each));
        document.setField(stepKey, "inputs", { ...node.inputs, [name]: {} });
      }}
    >
      {(name) => {
        const lines = all.filter((line) => line.target === stepKey && line.targetHandle === name);
        const port = { stepKey, node, side: "inputs" as const, name, locked };
        return (
          <Marked field={`inputs.${name}`} className="space-y-1.5">
            <PortHead {...port} taken={ports} />
            {lines.map((line) => (
              <Connection
                key={line.id}
                id={line.id}
                word="from"
                other={line.source}
                port={line.sourceHandle}
                locked={locked}
              />
            ))}
            <Origin stepKey={stepKey} node={node} name={name} wired={lines.length > 0} locked={locked} />
            <PortFlag {...port} flag="optional" label="Optional" />
          </Marked>
        );
      }}
    </Rows>
  );
}

/** useEarlier lists the steps that a step may wait for: all but itself and those that wait for it. */
function useEarlier(key: string): FlowNode[] {
  const graph = useGraph();
  const later = stepsAfter(key, graph.document.links());
  return graph.now().nodes.filter((each) => each.type === "task" && each.id !== key && !later.has(each.id));
}

/** Origin chooses where an input comes from: a file of the run, or an output of another step, which makes an edge. */
function Origin({ stepKey, node, name, wired, locked }: StepProps & { name: string; wired: boolean }) {
  const { document } = useGraph();
  const mark = useMark();
  const earlier = useEarlier(stepKey);
  const from = node.inputs?.[name]?.from ?? "";
  const given = [...document.roots.inputs.keys()].map((each) => `inputs.${each}`);
  const setFrom = (next: string) =>
    document.setField(stepKey, "inputs", withPort(node.inputs, name, { from: next || undefined }));
  const choose = (value: string) => {
    const [source, port] = value.split(" ");
    if (!source || !port) return setFrom(value);
    if (from) setFrom("");
    document.connect(source, port, stepKey, name);
  };
  return (
    <Small label={wired ? "Also from" : "From"}>
      <Select
        {...mark}
        aria-label={`Source of ${name}`}
        disabled={locked}
        value={from}
        onChange={(event) => choose(event.target.value)}
      >
        <option value="">{wired ? "No other source" : "Not connected"}</option>
        {from && !given.includes(from) && <option value={from}>{from} (unknown)</option>}
        {!wired && given.length > 0 && (
          <optgroup label="Workflow inputs">
            {given.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </optgroup>
        )}
        <optgroup label="Step outputs">
          {earlier.flatMap(({ id: key, data }) =>
            data.ports.outputs.map((port) => (
              <option key={`${key} ${port.name}`} value={`${key} ${port.name}`}>
                {data.node.name || data.node.id}: {port.name}
              </option>
            )),
          )}
        </optgroup>
      </Select>
    </Small>
  );
}

/** Ordering edits what the step waits for, and what waits for it, without files between them. */
function Ordering({ stepKey, lines, locked }: { stepKey: string; lines: Line[]; locked: boolean }) {
  const { document } = useGraph();
  const earlier = useEarlier(stepKey);
  if (lines.length + earlier.length === 0) return null;
  return (
    <section className="space-y-1">
      <h3 className="text-sm">Order (no files)</h3>
      {lines.map((line) =>
        line.target === stepKey ? (
          <Connection key={line.id} id={line.id} word="after" other={line.source} locked={locked} />
        ) : (
          <Connection key={line.id} id={line.id} word="before" other={line.target} locked={locked} />
        ),
      )}
      {earlier.length > 0 && (
        <Select
          aria-label="Run after"
          disabled={locked}
          value=""
          onChange={(event) => event.target.value && document.order(event.target.value, stepKey)}
        >
          <option value="">Run after…</option>
          {earlier.map(({ id: key, data }) => (
            <option key={key} value={key}>
              {data.node.name || data.node.id}
            </option>
          ))}
        </Select>
      )}
    </section>
  );
}

function Outputs({ stepKey, node, ports, locked }: PortsProps) {
  const { document } = useGraph();
  return (
    <Rows
      title="Outputs"
      empty="Files this step creates."
      addLabel="Add an output"
      names={ports.map((port) => port.name)}
      locked={locked}
      onAdd={() => {
        const name = freeName("result", (each) => ports.some((port) => port.name === each));
        document.setField(stepKey, "outputs", { ...node.outputs, [name]: { path: `${name}.txt` } });
      }}
    >
      {(name) => {
        const port = { stepKey, node, side: "outputs" as const, name, locked };
        return (
          <Marked field={`outputs.${name}`} className="space-y-1.5">
            <PortHead {...port} taken={ports} />
            <Small label="Path in the working folder">
              <DraftInput
                disabled={locked}
                className="font-mono"
                placeholder="result.txt"
                value={node.outputs?.[name]?.path ?? ""}
                onKeep={(path) =>
                  document.setField(stepKey, "outputs", withPort(node.outputs, name, { path: path || undefined }))
                }
              />
            </Small>
            <div className="flex flex-wrap gap-x-4">
              <PortFlag {...port} flag="many" label="Multiple files" />
              <PortFlag {...port} flag="directory" label="Folder" />
              <PortFlag {...port} flag="optional" label="Optional" />
            </div>
          </Marked>
        );
      }}
    </Rows>
  );
}

type Loose = Record<string, unknown>;

function withPort(ports: Record<string, object> | undefined, name: string, change: Loose): Record<string, Loose> {
  return { ...(ports as Record<string, Loose>), [name]: changed<Loose>((ports?.[name] ?? {}) as Loose, change) };
}

interface PortProps extends StepProps {
  side: Side;
  name: string;
}

function PortFlag(props: PortProps & { flag: "many" | "directory" | "optional"; label: string }) {
  const { stepKey, node, side, name, flag, label, locked } = props;
  const { document } = useGraph();
  const port = node[side]?.[name] as Loose | undefined;
  return (
    <Checkbox
      label={label}
      disabled={locked}
      checked={port?.[flag] === true}
      onChange={(event) =>
        document.setField(stepKey, side, withPort(node[side], name, { [flag]: event.target.checked || undefined }))
      }
    />
  );
}

interface ConnectionProps {
  id: string;
  word: string;
  other: string;
  port?: string | null | undefined;
  locked: boolean;
}

/** Connection is an edge in words, which can be removed. */
function Connection({ id, word, other, port, locked }: ConnectionProps) {
  const { document } = useGraph();
  const { show } = useWorkspace();
  return (
    <p className="flex items-center gap-1 text-[13px]">
      <span className="text-muted">{word}</span>
      <button type="button" className="truncate underline" onClick={() => show(other)}>
        {document.node(other)?.name || document.idOf(other)}
        {port && `.${port}`}
      </button>
      <IconButton
        size="sm"
        label="Remove line"
        disabled={locked}
        icon={<X className="size-3.5" aria-hidden />}
        onClick={() => document.remove([], [id])}
      />
    </p>
  );
}

/** PortHead edits the name of a port, and removes it. Everything that refers to it follows. */
function PortHead({ stepKey, node, side, name, taken, locked }: PortProps & { taken: Port[] }) {
  const { session } = useEditor();
  const { document } = useGraph();
  const kind = side === "inputs" ? "port" : "output";
  return (
    <NameRow
      what={side === "inputs" ? "input" : "output"}
      name={name}
      locked={locked}
      taken={(next) => taken.some((each) => each.name === next)}
      onRename={(next) => session.rename({ kind, node: node.id, name }, next)}
      onRemove={() => document.removePort(stepKey, side, name)}
    />
  );
}
