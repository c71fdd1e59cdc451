import { expect, test } from "vitest";
import { curl, millrace } from "./command.ts";

test("a run as a command line, with whatever a shell would take apart in quotes", () => {
  expect(
    millrace({
      workflowId: "wf_1",
      parameters: { count: 7, title: "it's $HOME", list: [1, "two"], empty: "" },
      inputs: { reads: ["teams/t/a.fq", "teams/t/b c.fq"], one: "teams/t/one" },
      compute: { vcpu: 2, ramGb: 8 },
    }),
  ).toBe(`millrace run wf_1 --watch \\
  -p count=7 \\
  -p 'title=it'\\''s $HOME' \\
  -p 'list=[1,"two"]' \\
  -p empty= \\
  -i reads=teams/t/a.fq \\
  -i 'reads=teams/t/b c.fq' \\
  -i one=teams/t/one \\
  --compute 2x8`);
  expect(millrace({ workflowId: "wf_1", resourceProfile: "gpu" })).toBe("millrace run wf_1 --watch \\\n  --gpu");
});

test("a run as a request", () => {
  expect(curl("https://mill.example", { workflowId: "wf_1", parameters: { who: "it's me" } })).toBe(
    `curl https://mill.example/api/runs \\
  -H "Authorization: Bearer $MILLRACE_TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"workflowId":"wf_1","parameters":{"who":"it'\\''s me"}}'`,
  );
});
