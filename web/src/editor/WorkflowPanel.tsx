import { useMemo } from "react";
import { useStore } from "zustand";
import type { Schemas } from "../api/client.ts";
import type { NamedPart } from "../definition/model.ts";
import { changed } from "../ui/changed.ts";
import { Checkbox, Choice, Select } from "../ui/Field.tsx";
import { CodeFromGit } from "./CodeFromGit.tsx";
import { useCanEdit, useEditor, useGraph, useShown } from "./context.ts";
import { DraftArea, DraftInput, NameRow, numberOf, Rows, refuseNumber, Small } from "./fields.tsx";
import { License } from "./License.tsx";
import { Marked, useMark, WithFindings } from "./Marked.tsx";
import { useNamed } from "./useDocument.ts";

type Parameter = Schemas["Parameter"] & Record<string, unknown>;

const types = ["string", "integer", "number", "boolean", "array", "object"];

/** WorkflowPanel edits what a run is asked for, and what it gives. A guest is shown no workflow of a team. */
export function WorkflowPanel({ workflowId }: { workflowId: string | null }) {
  const list = useStore(useEditor().problems, (state) => state.list);
  const findings = useMemo(() => (list ?? []).filter((each) => each.node === null), [list]);
  return (
    <div className="space-y-6">
      <WithFindings findings={findings}>
        <Parameters />
        <Inputs />
        <Outputs />
        <Marked field="source">
          <CodeFromGit locked={!useCanEdit()} guest={workflowId === null} />
        </Marked>
      </WithFindings>
      {workflowId && <License workflowId={workflowId} />}
    </div>
  );
}

function Head({ part, name, what, locked }: { part: NamedPart; name: string; what: string; locked: boolean }) {
  const { session } = useEditor();
  const { document } = useGraph();
  return (
    <NameRow
      what={what}
      name={name}
      locked={locked}
      taken={(next) => document.roots[part].has(next)}
      onRename={(next) => {
        if (part === "parameters") return session.rename({ kind: "parameter", name }, next);
        if (part === "inputs") return session.rename({ kind: "input", name }, next);
        // Nothing refers to an output of the workflow.
        const value = document.named("outputs", name);
        document.apply([
          { path: `outputs.${name}`, value: null },
          { path: `outputs.${next}`, value },
        ]);
      }}
      onRemove={() => document.setNamed(part, name, undefined)}
    />
  );
}

function Parameters() {
  const { document } = useGraph();
  const parameters = useNamed("parameters") as Record<string, Parameter>;
  const locked = !useCanEdit();
  const set = (name: string, change: Record<string, unknown>) => {
    document.setNamed("parameters", name, changed<Record<string, unknown>>(parameters[name] ?? {}, change));
  };
  return (
    <Rows
      title="Parameters"
      about={
        <>
          Set when a run starts. Commands read them as <code>$PARAM_name</code>.
        </>
      }
      empty="None yet."
      addLabel="Add a parameter"
      names={Object.keys(parameters).toSorted()}
      locked={locked}
      onAdd={() =>
        document.setNamed("parameters", document.freeName("parameters", "value"), { type: "string", default: "" })
      }
    >
      {(name) => {
        const parameter = parameters[name] ?? {};
        const type = [parameter.type].flat().find((each) => each !== "null") ?? "string";
        return (
          <Marked field={`parameters.${name}`} className="space-y-1.5">
            <Head part="parameters" name={name} what="parameter" locked={locked} />
            <div className="grid grid-cols-2 gap-2">
              <Small label="Type">
                <Select
                  disabled={locked}
                  value={String(type)}
                  onChange={(event) => set(name, { type: event.target.value, default: undefined, enum: undefined })}
                >
                  {types.map((each) => (
                    <option key={each}>{each}</option>
                  ))}
                </Select>
              </Small>
              <Small label="Default">
                <DraftInput
                  placeholder="No default"
                  disabled={locked}
                  value={parameter.default === undefined ? "" : textOf(parameter.default)}
                  refuse={(text) => (readValue(text, String(type)) === null ? `Not a valid ${type}.` : null)}
                  onKeep={(text) => set(name, { default: readValue(text, String(type))?.value })}
                />
              </Small>
              <Small label="Title">
                <DraftInput
                  disabled={locked}
                  value={parameter.title ?? ""}
                  onKeep={(title) => set(name, { title: title || undefined })}
                />
              </Small>
              <Small label="Allowed values">
                <DraftInput
                  placeholder="any, or a, b, c"
                  disabled={locked}
                  value={(parameter.enum ?? []).map(textOf).join(", ")}
                  refuse={(text) => {
                    const wrong = text.split(",").find((each) => readValue(each.trim(), String(type)) === null);
                    return wrong === undefined ? null : `“${wrong.trim()}” is not a valid ${type}.`;
                  }}
                  onKeep={(text) => {
                    const choices = text
                      .split(",")
                      .flatMap((each) => readValue(each.trim(), String(type))?.value ?? []);
                    set(name, { enum: choices.length > 0 ? choices : undefined });
                  }}
                />
              </Small>
              {(type === "integer" || type === "number") && (
                <>
                  <Small label="Minimum">
                    <DraftInput
                      disabled={locked}
                      value={parameter.minimum === undefined ? "" : String(parameter.minimum)}
                      refuse={refuseNumber}
                      onKeep={(text) => set(name, { minimum: numberOf(text) })}
                    />
                  </Small>
                  <Small label="Maximum">
                    <DraftInput
                      disabled={locked}
                      value={parameter.maximum === undefined ? "" : String(parameter.maximum)}
                      refuse={refuseNumber}
                      onKeep={(text) => set(name, { maximum: numberOf(text) })}
                    />
                  </Small>
                </>
              )}
            </div>
            <Small label="Help">
              <DraftArea
                rows={2}
                disabled={locked}
                value={parameter.description ?? ""}
                onKeep={(text) => set(name, { description: text || undefined })}
              />
            </Small>
          </Marked>
        );
      }}
    </Rows>
  );
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** readValue reads a default of a type: undefined where it is empty, null where it is none of that type. */
function readValue(text: string, type: string): { value: unknown } | null {
  if (text === "" && type !== "string") return { value: undefined };
  if (type === "string") return { value: text };
  try {
    const value: unknown = JSON.parse(text);
    const kind = Array.isArray(value) ? "array" : typeof value;
    if (type === "integer") return Number.isInteger(value) ? { value } : null;
    return kind === type ? { value } : null;
  } catch {
    return null;
  }
}

function Inputs() {
  const { document } = useGraph();
  const inputs = useNamed("inputs") as Record<string, Schemas["Input"]>;
  const locked = !useCanEdit();
  return (
    <Rows
      title="Input files"
      about={
        <>
          Steps refer to a file as <code>inputs.name</code>.
        </>
      }
      empty="None yet."
      addLabel="Add a file input"
      names={Object.keys(inputs).toSorted()}
      locked={locked}
      onAdd={() => document.setNamed("inputs", document.freeName("inputs", "files"), { type: "files", required: true })}
    >
      {(name) => {
        const input = inputs[name];
        if (!input) return null;
        const set = (change: Partial<Schemas["Input"]>) => document.setNamed("inputs", name, { ...input, ...change });
        return (
          <Marked field={`inputs.${name}`} className="space-y-1.5">
            <Head part="inputs" name={name} what="file input" locked={locked} />
            <div className="flex items-center gap-4">
              <Choice
                aria-label={`How many files ${name} takes`}
                className="w-auto!"
                disabled={locked}
                options={{ file: "one file", files: "multiple files", directory: "a folder" }}
                value={input.type}
                onChange={(type) => set({ type })}
              />
              <Checkbox
                label="Required"
                disabled={locked}
                checked={input.required !== false}
                onChange={(event) => set({ required: event.target.checked })}
              />
            </div>
            <Small label="Help">
              <DraftInput
                disabled={locked}
                value={input.description ?? ""}
                onKeep={(description) => set({ description })}
              />
            </Small>
          </Marked>
        );
      }}
    </Rows>
  );
}

function Outputs() {
  const graph = useGraph();
  const { document } = graph;
  const outputs = useNamed("outputs") as Record<string, { from?: string }>;
  const locked = !useCanEdit();
  useShown(); // steps and their outputs
  const sources = graph.now().nodes.flatMap(({ data: { node, ports } }) =>
    ports.outputs.map((port) => ({
      value: `${node.id}.${port.name}`,
      label: `${node.name || node.id}: ${port.name}`,
    })),
  );
  return (
    <Rows
      title="Run outputs"
      about="If none are listed, every output of every step is kept."
      empty="All outputs of all steps are kept."
      addLabel="Add a run output"
      names={Object.keys(outputs).toSorted()}
      locked={locked}
      onAdd={() => {
        const from = sources[0]?.value ?? "";
        document.setNamed("outputs", document.freeName("outputs", from.split(".")[1] ?? "result"), { from });
      }}
    >
      {(name) => (
        <Marked field={`outputs.${name}`} className="space-y-1.5">
          <Head part="outputs" name={name} what="output" locked={locked} />
          <Source
            name={name}
            from={outputs[name]?.from ?? ""}
            sources={sources}
            locked={locked}
            onChange={(from) => document.setNamed("outputs", name, { ...outputs[name], from })}
          />
        </Marked>
      )}
    </Rows>
  );
}

interface SourceProps {
  name: string;
  from: string;
  sources: { value: string; label: string }[];
  locked: boolean;
  onChange: (from: string) => void;
}

function Source({ name, from, sources, locked, onChange }: SourceProps) {
  return (
    <Select
      {...useMark()}
      aria-label={`Source of ${name}`}
      disabled={locked}
      value={from}
      onChange={(event) => onChange(event.target.value)}
    >
      {!sources.some((source) => source.value === from) && <option value={from}>{from || "Select one"}</option>}
      {sources.map((source) => (
        <option key={source.value} value={source.value}>
          {source.label}
        </option>
      ))}
    </Select>
  );
}
