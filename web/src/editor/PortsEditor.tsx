import { X } from "lucide-react";
import { IconButton } from "../ui/Button.tsx";
import { Checkbox } from "../ui/Field.tsx";
import { useEditor, useGraph } from "./context.ts";
import { DraftInput, RemoveButton, Rows, refuseName, Small } from "./fields.tsx";
import { freeName, type GraphNode } from "./graph.ts";
import { type Port, portsOf } from "./ports.ts";

/** PortsEditor edits what goes into a step and what comes out, with the lines that end there. */
export function PortsEditor({ node, locked }: { node: GraphNode; locked: boolean }) {
  const { document } = useGraph();
  const { show } = useEditor();
  const edges = document.edges().filter((edge) => edge.source === node.id || edge.target === node.id);
  const ports = portsOf(node, edges);
  const sources = [
    ...[...document.roots.inputs.keys()].map((name) => `inputs.${name}`),
    ...[...document.roots.nodes.entries()].flatMap(([id]) =>
      id === node.id ? [] : Object.keys(document.node(id)?.outputs ?? {}).map((port) => `${id}.${port}`),
    ),
  ];
  const nameOf = (id: string) => document.node(id)?.name || id;
  const setPort = (side: "inputs" | "outputs", name: string, change: Record<string, unknown>) => {
    const old = (node[side]?.[name] ?? {}) as Record<string, unknown>;
    const port = Object.fromEntries(Object.entries({ ...old, ...change }).filter(([, value]) => value !== undefined));
    document.setField(node.id, side, { ...node[side], [name]: port });
  };
  const ordering = edges.filter((edge) => !edge.sourceHandle);
  return (
    <>
      <datalist id={`sources-${node.id}`}>
        {sources.map((source) => (
          <option key={source} value={source} />
        ))}
      </datalist>
      <Rows
        title="Inputs"
        empty="Draw a line to this step, or add an input."
        addLabel="Add an input"
        names={ports.inputs.map((port) => port.name)}
        locked={locked}
        onAdd={() => {
          const name = freeName("input", (each) => ports.inputs.some((port) => port.name === each));
          document.setField(node.id, "inputs", { ...node.inputs, [name]: {} });
        }}
      >
        {(name) => {
          const port = node.inputs?.[name];
          const lines = edges.filter((edge) => edge.target === node.id && edge.targetHandle === name);
          return (
            <div className="space-y-1.5">
              <PortHead node={node} side="inputs" name={name} taken={ports.inputs} locked={locked} />
              {lines.map((line) => (
                <p key={line.id} className="flex items-center gap-1 text-[13px]">
                  <span className="text-muted">from</span>
                  <button type="button" className="truncate underline" onClick={() => show(line.source)}>
                    {nameOf(line.source)}.{line.sourceHandle}
                  </button>
                  <IconButton
                    size="sm"
                    label="Remove the line"
                    disabled={locked}
                    icon={<X className="size-3.5" aria-hidden />}
                    onClick={() => document.remove([], [line.id])}
                  />
                </p>
              ))}
              {lines.length === 0 && (
                <Small label="Comes from">
                  <DraftInput
                    list={`sources-${node.id}`}
                    disabled={locked}
                    placeholder="inputs.reads"
                    className="font-mono"
                    value={port?.from ?? ""}
                    onKeep={(from) => setPort("inputs", name, { from: from || undefined })}
                  />
                </Small>
              )}
              <Checkbox
                label="Optional"
                disabled={locked}
                checked={port?.optional === true}
                onChange={(event) => setPort("inputs", name, { optional: event.target.checked || undefined })}
              />
            </div>
          );
        }}
      </Rows>
      <Rows
        title="Outputs"
        empty="Files that this step leaves behind."
        addLabel="Add an output"
        names={ports.outputs.map((port) => port.name)}
        locked={locked}
        onAdd={() => {
          const name = freeName("result", (each) => ports.outputs.some((port) => port.name === each));
          document.setField(node.id, "outputs", { ...node.outputs, [name]: { path: `${name}.txt` } });
        }}
      >
        {(name) => {
          const port = node.outputs?.[name];
          return (
            <div className="space-y-1.5">
              <PortHead node={node} side="outputs" name={name} taken={ports.outputs} locked={locked} />
              <Small label="Path in the working folder">
                <DraftInput
                  disabled={locked}
                  className="font-mono"
                  placeholder="result.txt"
                  value={port?.path ?? ""}
                  onKeep={(path) => setPort("outputs", name, { path: path || undefined })}
                />
              </Small>
              <div className="flex gap-4">
                <Checkbox
                  label="Many files"
                  disabled={locked}
                  checked={port?.many === true}
                  onChange={(event) => setPort("outputs", name, { many: event.target.checked || undefined })}
                />
                <Checkbox
                  label="Optional"
                  disabled={locked}
                  checked={port?.optional === true}
                  onChange={(event) => setPort("outputs", name, { optional: event.target.checked || undefined })}
                />
              </div>
            </div>
          );
        }}
      </Rows>
      {ordering.length > 0 && (
        <section className="space-y-1">
          <h3 className="text-sm">Order only</h3>
          {ordering.map((line) => (
            <p key={line.id} className="flex items-center gap-1 text-[13px]">
              <span className="text-muted">{line.target === node.id ? "after" : "before"}</span>
              {nameOf(line.target === node.id ? line.source : line.target)}
              <IconButton
                size="sm"
                label="Remove the line"
                disabled={locked}
                icon={<X className="size-3.5" aria-hidden />}
                onClick={() => document.remove([], [line.id])}
              />
            </p>
          ))}
        </section>
      )}
    </>
  );
}

/** PortHead is a port's name, and a way to remove it; lines that end in it follow. */
function PortHead({
  node,
  side,
  name,
  taken,
  locked,
}: {
  node: GraphNode;
  side: "inputs" | "outputs";
  name: string;
  taken: Port[];
  locked: boolean;
}) {
  const { document } = useGraph();
  const what = side === "inputs" ? "input" : "output";
  return (
    <div className="flex items-center gap-1.5">
      <DraftInput
        aria-label={`Name of the ${what}`}
        className="font-mono"
        disabled={locked}
        value={name}
        refuse={refuseName((next) => next !== name && taken.some((each) => each.name === next))}
        onKeep={(next) => document.renamePort(node.id, side, name, next)}
      />
      <RemoveButton
        label={`Remove the ${what} ${name}`}
        locked={locked}
        onClick={() => document.removePort(node.id, side, name)}
      />
    </div>
  );
}
