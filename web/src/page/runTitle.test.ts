import { expect, test } from "vitest";
import { runTitle } from "./runTitle.ts";

test("a run is called by its name, else by workflow and number", () => {
  expect(runTitle({ workflowName: "align", number: 12, name: null })).toBe("align #12");
  expect(runTitle({ workflowName: "align", number: 12, name: "Strict" })).toBe("Strict (align #12)");
});
