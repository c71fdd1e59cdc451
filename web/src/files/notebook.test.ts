import { expect, test } from "vitest";
import { notebook } from "./notebook.ts";

const cell = (outputs: unknown[]) => JSON.stringify({ cells: [{ cell_type: "code", source: ["a\n", "b"], outputs }] });

test("cells and what they printed are read, as lines or as one text", () => {
  const [first] = notebook(cell([{ output_type: "stream", text: ["one\n", "two"] }]));
  expect(first).toEqual({ kind: "code", source: "a\nb", outputs: [{ kind: "text", text: "one\ntwo" }] });
});

test("a picture is shown, HTML only by its text", () => {
  const [first] = notebook(
    cell([
      { output_type: "display_data", data: { "image/png": "aGk=\n", "text/plain": "<Figure>" } },
      { output_type: "execute_result", data: { "text/html": "<script>alert(1)</script>", "text/plain": "a table" } },
      { output_type: "display_data", data: { "application/javascript": "alert(1)" } },
      { output_type: "display_data", data: { "image/svg+xml": "<svg onload=alert(1)>" } },
    ]),
  );
  expect(first?.outputs).toEqual([
    { kind: "image", src: "data:image/png;base64,aGk=" },
    { kind: "text", text: "a table" },
    { kind: "left out" },
    { kind: "left out" },
  ]);
});

test("an error keeps its lines without their colours", () => {
  const [first] = notebook(cell([{ output_type: "error", traceback: ["\u001b[31mKeyError\u001b[0m", "line"] }]));
  expect(first?.outputs).toEqual([{ kind: "error", text: "KeyError\nline" }]);
});

test("anything else is no notebook, and odd parts are left out", () => {
  for (const bad of ["", "[]", "{}", '{"cells": 1}']) expect(() => notebook(bad)).toThrow();
  expect(notebook('{"cells": [1, null, {"cell_type": 3, "source": 4, "outputs": {"a": 1}}]}')).toEqual([
    { kind: "raw", source: "", outputs: [] },
  ]);
});
