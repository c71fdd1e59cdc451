import { X } from "lucide-react";
import type { FlowNode } from "../graph/flow.ts";
import type { GraphEdge, GraphNode } from "../graph/model.ts";
import { type Port, portsOf } from "../graph/ports.ts";
import { IconButton } from "../ui/Button.tsx";
import { changed } from "../ui/changed.ts";
import { Checkbox, Select } from "../ui/Field.tsx";
import { useEditor, useGraph } from "./context.ts";
import { DraftInput, NameRow, Rows, Small } from "./fields.tsx";
import { freeName } from "./graph.ts";

interface PortsProps {
  node: GraphNode;
  ports: Port[];
  edges: GraphEdge[];
  locked: boolean;
}

/** PortsEditor edits what goes into a step and what comes out, with the lines that end there. */
export function PortsEditor({ node, locked }: { node: GraphNode; locked: boolean }) {
  const { document } = useGraph();
  const edges = document.edges().filter((edge) => edge.source === node.id || edge.target === node.id);
  const ports = portsOf(node, edges);
  return (
    <>
      <Inputs node={node} ports={ports.inputs} edges={edges} locked={locked} />
      <Outputs node={node} ports={ports.outputs} edges={edges} locked={locked} />
      <Ordering node={node} lines={edges.filter((edge) => !edge.sourceHandle)} locked={locked} />
    </>
  );
}

function Inputs({ node, ports, edges, locked }: PortsProps) {
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
        document.setField(node.id, "inputs", { ...node.inputs, [name]: {} });
      }}
    >
      {(name) => {
        const lines = edges.filter((edge) => edge.target === node.id && edge.targetHandle === name);
        return (
          <div className="space-y-1.5">
            <PortHead node={node} side="inputs" name={name} taken={ports} locked={locked} />
            {lines.map((line) => (
              <Line
                key={line.id}
                id={line.id}
                word="from"
                other={line.source}
                port={line.sourceHandle}
                locked={locked}
              />
            ))}
            <Origin node={node} name={name} wired={lines.length > 0} locked={locked} />
            <PortFlag node={node} side="inputs" name={name} flag="optional" label="Optional" locked={locked} />
          </div>
        );
      }}
    </Rows>
  );
}

/** useEarlier is the steps that a step may wait for: all but itself and what waits for it. */
function useEarlier(id: string): FlowNode[] {
  const graph = useGraph();
  const later = graph.document.after(id);
  return graph.now().nodes.filter((each) => each.type === "task" && each.id !== id && !later.has(each.id));
}

/** Origin chooses where an input comes from: a file of the run, or an output of another step, which makes a line. */
function Origin({ node, name, wired, locked }: { node: GraphNode; name: string; wired: boolean; locked: boolean }) {
  const { document } = useGraph();
  const earlier = useEarlier(node.id);
  const from = node.inputs?.[name]?.from ?? "";
  const given = [...document.roots.inputs.keys()].map((each) => `inputs.${each}`);
  const setFrom = (next: string) =>
    document.setField(node.id, "inputs", withPort(node.inputs, name, { from: next || undefined }));
  const choose = (value: string) => {
    const [source, port] = value.split(" ");
    if (!source || !port) return setFrom(value);
    if (from) setFrom("");
    document.connect(source, port, node.id, name);
  };
  return (
    <Small label={wired ? "And from" : "Comes from"}>
      <Select
        aria-label={`Where ${name} comes from`}
        disabled={locked}
        value={from}
        onChange={(event) => choose(event.target.value)}
      >
        <option value="">{wired ? "Nothing else" : "Not connected"}</option>
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
          {earlier.flatMap(({ id, data }) =>
            data.ports.outputs.map((port) => (
              <option key={`${id} ${port.name}`} value={`${id} ${port.name}`}>
                {data.node.name || id}: {port.name}
              </option>
            )),
          )}
        </optgroup>
      </Select>
    </Small>
  );
}

/** Ordering is what the step waits for, and what waits for it, without files between them. */
function Ordering({ node, lines, locked }: { node: GraphNode; lines: GraphEdge[]; locked: boolean }) {
  const { document } = useGraph();
  const earlier = useEarlier(node.id);
  if (lines.length + earlier.length === 0) return null;
  return (
    <section className="space-y-1">
      <h3 className="text-sm">Order only</h3>
      {lines.map((line) =>
        line.target === node.id ? (
          <Line key={line.id} id={line.id} word="after" other={line.source} locked={locked} />
        ) : (
          <Line key={line.id} id={line.id} word="before" other={line.target} locked={locked} />
        ),
      )}
      {earlier.length > 0 && (
        <Select
          aria-label="Run after"
          disabled={locked}
          value=""
          onChange={(event) => event.target.value && document.order(event.target.value, node.id)}
        >
          <option value="">Run after…</option>
          {earlier.map(({ id, data }) => (
            <option key={id} value={id}>
              {data.node.name || id}
            </option>
          ))}
        </Select>
      )}
    </section>
  );
}

function Outputs({ node, ports, locked }: PortsProps) {
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
        document.setField(node.id, "outputs", { ...node.outputs, [name]: { path: `${name}.txt` } });
      }}
    >
      {(name) => (
        <div className="space-y-1.5">
          <PortHead node={node} side="outputs" name={name} taken={ports} locked={locked} />
          <Small label="Path in the working folder">
            <DraftInput
              disabled={locked}
              className="font-mono"
              placeholder="result.txt"
              value={node.outputs?.[name]?.path ?? ""}
              onKeep={(path) =>
                document.setField(node.id, "outputs", withPort(node.outputs, name, { path: path || undefined }))
              }
            />
          </Small>
          <div className="flex flex-wrap gap-x-4">
            <PortFlag node={node} side="outputs" name={name} flag="many" label="Multiple files" locked={locked} />
            <PortFlag node={node} side="outputs" name={name} flag="directory" label="Folder" locked={locked} />
            <PortFlag node={node} side="outputs" name={name} flag="optional" label="Optional" locked={locked} />
          </div>
        </div>
      )}
    </Rows>
  );
}

type Side = "inputs" | "outputs";
type Loose = Record<string, unknown>;

function withPort(ports: Record<string, object> | undefined, name: string, change: Loose): Record<string, Loose> {
  return { ...(ports as Record<string, Loose>), [name]: changed<Loose>((ports?.[name] ?? {}) as Loose, change) };
}

function PortFlag(props: {
  node: GraphNode;
  side: Side;
  name: string;
  flag: "many" | "directory" | "optional";
  label: string;
  locked: boolean;
}) {
  const { node, side, name, flag, label, locked } = props;
  const { document } = useGraph();
  const port = node[side]?.[name] as Loose | undefined;
  return (
    <Checkbox
      label={label}
      disabled={locked}
      checked={port?.[flag] === true}
      onChange={(event) =>
        document.setField(node.id, side, withPort(node[side], name, { [flag]: event.target.checked || undefined }))
      }
    />
  );
}

/** Line is a line of the graph in words, with a way to remove it. */
function Line(props: { id: string; word: string; other: string; port?: string | null | undefined; locked: boolean }) {
  const { id, word, other, port, locked } = props;
  const { document } = useGraph();
  const { show } = useEditor();
  return (
    <p className="flex items-center gap-1 text-[13px]">
      <span className="text-muted">{word}</span>
      <button type="button" className="truncate underline" onClick={() => show(other)}>
        {document.node(other)?.name || other}
        {port && `.${port}`}
      </button>
      <IconButton
        size="sm"
        label="Remove connection"
        disabled={locked}
        icon={<X className="size-3.5" aria-hidden />}
        onClick={() => document.remove([], [id])}
      />
    </p>
  );
}

/** PortHead is a port's name, and a way to remove it; lines that end in it follow. */
function PortHead(props: { node: GraphNode; side: Side; name: string; taken: Port[]; locked: boolean }) {
  const { node, side, name, taken, locked } = props;
  const { document } = useGraph();
  return (
    <NameRow
      what={side === "inputs" ? "input" : "output"}
      name={name}
      locked={locked}
      taken={(next) => taken.some((each) => each.name === next)}
      onRename={(next) => document.renamePort(node.id, side, name, next)}
      onRemove={() => document.removePort(node.id, side, name)}
    />
  );
}
