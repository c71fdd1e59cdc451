import { render, screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, test, vi } from "vitest";
import { createStore } from "zustand/vanilla";
import type { Definition, GraphNode } from "../definition/model.ts";
import { byStep, type Finding } from "../definition/problems.ts";
import type { Actions } from "./actions/actions.ts";
import { Editing, newSoughtField, Working } from "./context.ts";
import { Document } from "./document/document.ts";
import { GraphStore } from "./document/store.ts";
import { writeDefinition } from "./document/ydoc.ts";
import { Inspector } from "./Inspector.tsx";
import { newProblems } from "./problems.ts";
import type { Session } from "./session.ts";
import { WorkflowPanel } from "./WorkflowPanel.tsx";

vi.mock("./CommandEditor.tsx", () => ({ default: () => null }));
vi.mock("./NodeSecrets.tsx", () => ({ NodeSecrets: () => null }));
vi.mock("./CodeFromGit.tsx", () => ({ CodeFromGit: () => null }));

function finding(field: string, node: string | null): Finding {
  return {
    path: field,
    message: `wrong ${field}`,
    code: "x",
    node,
    edge: null,
    field,
    fix: null,
    warning: false,
    about: "",
  };
}

/** show renders a part of the editor of a definition with these findings. */
function show(definition: Definition, list: Finding[], children: ReactNode) {
  const document = new Document();
  writeDefinition(document.doc, definition, "server");
  const graph = new GraphStore(document);
  const state = createStore(() => ({ graph, live: true, canEdit: false, lock: null }));
  const problems = newProblems();
  problems.setState({ list, byNode: byStep(list) });
  const sought = newSoughtField();
  const actions = { target: () => ({ graph, canEdit: false }), run: () => {} } as unknown as Actions;
  render(
    <Editing value={{ session: { state } as unknown as Session, problems }}>
      <Working value={{ actions, show: () => {}, goTo: () => {}, sought }}>{children}</Working>
    </Editing>,
  );
}

const shown = (field: string) => screen.getAllByText(`Wrong ${field}.`);
const isInNotice = (field: string) => shown(field)[0]?.closest("[data-marked]") === null;

const step = {
  id: "trim",
  type: "task",
  command: "true",
  inputs: { reads: {} },
  retries: { max: 1, factor: 3 },
} as unknown as GraphNode;

test("every problem of a step is shown once: at its field, or above the fields", () => {
  const fields = ["resources.vcpu", "retries.max", "inputs.reads.from", "env.A", "environment.pip[0]", "when"];
  const others = [
    "resources.ram",
    "retries.factor",
    "retries.on[0]",
    "scatter",
    "scatter.maxParallel",
    'inputs["bad name"]',
    "position",
    "edges[0].sourceHandle",
  ];
  const list = [...fields, ...others].map((field) => finding(field, "trim"));
  show({ version: 1, nodes: [step] }, list, <Inspector stepKey="trim" node={step} workflowId={null} />);
  for (const field of [...fields, ...others]) expect(shown(field), field).toHaveLength(1);
  expect(fields.filter(isInNotice)).toEqual([]);
  expect(others.filter((field) => !isInNotice(field))).toEqual([]);
});

test("a note shows its problems", () => {
  const note = { id: "about", type: "note", text: "x" } as unknown as GraphNode;
  const list = ["text", "command"].map((field) => finding(field, "about"));
  show({ version: 1, nodes: [note] }, list, <Inspector stepKey="about" node={note} workflowId={null} />);
  expect(isInNotice("text")).toBe(false);
  expect(isInNotice("command")).toBe(true);
});

test("every problem of the workflow is shown once: at its entry, or above all entries", () => {
  const fields = ["inputs.reads.type", "parameters.q", "outputs.out.from", "source.git"];
  const others = ["inputs", "parameters", "outputs", 'inputs["bad name"]', "nodes"];
  const list = [...fields, ...others].map((field) => finding(field, null));
  const definition = {
    version: 1,
    inputs: { reads: { type: "file", required: true } },
    parameters: { q: { type: "integer" } },
    outputs: { out: { from: "trim.o" } },
  } as Definition;
  show(definition, list, <WorkflowPanel workflowId={null} />);
  for (const field of [...fields, ...others]) expect(shown(field), field).toHaveLength(1);
  expect(fields.filter(isInNotice)).toEqual([]);
  expect(others.filter((field) => !isInNotice(field))).toEqual([]);
});
