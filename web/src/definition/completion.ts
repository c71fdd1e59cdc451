// What can be named at a place of a definition.
import type { Definition, GraphNode } from "./model.ts";
import { stepsBefore } from "./order.ts";
import { portsOf } from "./ports.ts";

export interface Suggestion {
  /** What is inserted. */
  text: string;
  /** What it stands for. */
  about: string;
}

/** Variables that every command finds. */
const everywhere: Suggestion[] = [
  { text: "ATTEMPT", about: "number of this attempt, from 1" },
  { text: "RUN_ID", about: "id of the run" },
  { text: "NODE_ID", about: "id of this step" },
  { text: "VCPU", about: "vCPUs of this step" },
  { text: "RAM_GB", about: "memory of this step in GB" },
  { text: "PROGRESS_FILE", about: "file to write done/total into" },
];

/** commandVariables lists the variables that a step's command can read. */
export function commandVariables(definition: Definition, node: GraphNode): Suggestion[] {
  return [
    ...portsOf(node, definition.edges ?? []).inputs.flatMap(({ name }) => [
      { text: `INPUT_${name}`, about: "path of the input" },
      { text: `INPUT_${name}_LIST`, about: "file with one path a line" },
    ]),
    ...Object.keys(definition.parameters ?? {}).map((name) => ({ text: `PARAM_${name}`, about: "parameter" })),
    ...(node.scatter
      ? [
          { text: "ITEM", about: "this item" },
          { text: "ITEM_INDEX", about: "number of this item" },
        ]
      : []),
    ...(node.secrets ?? []).map((name) => ({ text: `SECRET_${name}`, about: "secret" })),
    ...Object.keys(node.env ?? {}).map((name) => ({ text: name, about: "variable of this step" })),
    ...(definition.source ? [{ text: "SOURCE_DIR", about: "code from Git" }] : []),
    ...everywhere,
  ];
}

/** expressionNames lists what an expression of a step can name: parameters, inputs, and outputs of the steps before it. */
export function expressionNames(definition: Definition, node: string): Suggestion[] {
  const before = stepsBefore(node, definition.edges ?? []);
  return [
    ...Object.entries(definition.inputs ?? {}).map(([name, input]) => ({ text: `inputs.${name}`, about: input.type })),
    ...Object.entries(definition.parameters ?? {}).map(([name, parameter]) => ({
      text: `params.${name}`,
      about: String(parameter.type ?? "parameter"),
    })),
    ...(definition.nodes ?? [])
      .filter((step) => before.has(step.id))
      .flatMap((step) =>
        Object.keys(step.outputs ?? {}).map((port) => ({
          text: `nodes.${step.id}.outputs.${port}`,
          about: step.name || step.id,
        })),
      ),
  ];
}
