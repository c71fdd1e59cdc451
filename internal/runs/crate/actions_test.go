package crate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/runs"
)

// says are the entities of the crate of a pretended run.
func (p pretended) says(t *testing.T) map[string]map[string]any {
	t.Helper()
	g, _ := graph.Salvage([]byte(p.definition))
	return entities(t, p.contents(t), g)
}

func check(t *testing.T, d map[string]map[string]any, wants map[string]string) {
	t.Helper()
	for at, want := range wants {
		var id, field string
		if _, err := fmt.Sscan(at, &id, &field); err != nil {
			t.Fatal(at, err)
		}
		if got := fmt.Sprint(d[id][field]); got != want {
			t.Errorf("%s of %s is %s, want %s", field, id, got, want)
		}
	}
}

func TestEachItemOfAStepIsAnActionOfItsOwn(t *testing.T) {
	t.Parallel()
	d := pretended{definition: everything, skipped: []string{"quick"}, change: func(c *contents) {
		c.tasks.add(runs.TraceTask{Node: "last", Attempt: 2, Status: runs.TraceFailed, Exit: new(4), Start: noon, Complete: noon}) // of the same item
	}}.says(t)
	check(t, d, map[string]string{
		"#control/trim object":           "[map[@id:#action/trim/0] map[@id:#action/trim/1] map[@id:#action/trim/2]]",
		"#action/trim/1 object":          "[map[@id:#files/reads] map[@id:urn:sha256:ref0/] map[@id:urn:sha256:reads1]]",
		"#action/trim/1 result":          "map[@id:trim/o/1/o%200.txt]",
		"#action/trim/1 instrument":      "map[@id:https://lab.example/workflows/wf_1?node=trim]",
		"#files/trim.o hasPart":          "[map[@id:trim/o/0/o%200.txt] map[@id:trim/o/1/o%200.txt] map[@id:trim/o/2/o%200.txt]]",
		"#output/trimmed additionalType": "Collection",
		"#files/trim.o exampleOfWork":    "map[@id:#output/trimmed]",
		"#control/last object":           "map[@id:#action/last]",
		"#action/last error":             "The command exited with status 4.",
		"#action/last object":            "[map[@id:#files/trim.o] map[@id:deep/d/d%200.txt/] map[@id:#files/split.parts]]",
		"#action/split error":            "<nil>",
		"#control/quick object":          "<nil>",
		"workflow.json hasPart":          "[map[@id:https://lab.example/workflows/wf_1?node=trim] map[@id:https://lab.example/workflows/wf_1?node=deep] map[@id:https://lab.example/workflows/wf_1?node=split] map[@id:https://lab.example/workflows/wf_1?node=last]]",
		"#image/debian@sha256:0123456789012345678901234567890123456789012345678901234567890123 registry": "docker.io",
	})
	values := pretended{definition: `{"nodes":[{"id":"a","command":"true","scatter":{"over":"[0, 1]"}}]}`, items: 2}.says(t)
	check(t, values, map[string]string{"#action/a/1 object": "map[@id:#item/a/1]", "#item/a/1 value": "1"})
}

func TestManyItemsAreOneAction(t *testing.T) {
	t.Parallel()
	d := pretended{definition: everything, items: maxItems + 1}.says(t)
	check(t, d, map[string]string{
		"#control/trim object": "map[@id:#action/trim]", "#action/trim result": "map[@id:#files/trim.o]", "#action/trim object": "[map[@id:#files/reads] map[@id:urn:sha256:ref0/]]",
	})
	if parts, _ := d["#files/trim.o"]["hasPart"].([]any); len(parts) != maxItems+1 || d["#action/trim/0"] != nil {
		t.Errorf("%d files", len(parts))
	}
}

func TestALaunchedPipelineIsAWorkflowInTheRun(t *testing.T) {
	t.Parallel()
	d := pretended{definition: everything, change: launching, fails: "last"}.says(t)
	const tool = "https://lab.example/runs/run_1?node=last.n_"
	check(t, d, map[string]string{
		"https://lab.example/workflows/wf_1?node=last @type":   "[SoftwareSourceCode ComputationalWorkflow HowTo]",
		"https://lab.example/workflows/wf_1?node=last hasPart": "[map[@id:" + tool + "0] map[@id:" + tool + "1]]",
		"https://lab.example/workflows/wf_1?node=last step":    "[map[@id:#step/last.n_0] map[@id:#step/last.n_1] map[@id:#step/last.n_2]]",
		"#organize/last instrument":                            "map[@id:https://www.nextflow.io]",
		"#organize/last result":                                "map[@id:#action/last]",
		"#organize/last object":                                "[map[@id:#control/last.n_0] map[@id:#control/last.n_1]]",
		"https://www.nextflow.io softwareVersion":              "26.04.1",
		"#control/last.n_0 object":                             "[map[@id:#action/last.n_0/0] map[@id:#action/last.n_0/1]]",
		"#action/last.n_1/2 error":                             "The command exited with status 127.",
		"#organize instrument":                                 "map[@id:" + home + "]",
	})
}

func TestAReportedRunWasExecutedByItsEngine(t *testing.T) {
	t.Parallel()
	d := pretended{definition: ofAnother, change: reporting}.says(t)
	check(t, d, map[string]string{
		"#organize instrument": "map[@id:https://snakemake.github.io]", "https://snakemake.github.io softwareVersion": "9.27.1", "#control/b object": "[map[@id:#action/b/0] map[@id:#action/b/9]]",
	})
	if d[home] != nil {
		t.Error("Millrace is said to have executed it")
	}
}

func TestAnotherEngineIsNamedAsItWasReported(t *testing.T) {
	t.Parallel()
	d := pretendedRuns["other-engine"].says(t)
	check(t, d, map[string]string{"#organize instrument": "map[@id:https://lab.example/runs/run_1#engine]", "https://lab.example/runs/run_1#engine name": "cromwell", "https://lab.example/runs/run_1#engine url": "<nil>", "https://lab.example/runs/run_1#engine softwareVersion": "87"})
}

func TestACrateHasNoSecretOfAnAddress(t *testing.T) {
	t.Parallel()
	const definition = `{"parameters":{"links":{"type":"json"}},"inputs":{"gone":{}},"nodes":[{"id":"a","command":"true","scatter":{"over":"params.links"}}]}`
	const link = `"https://host.example/a.fq?X-Amz-Signature=secret"`
	d := pretended{definition: definition, items: 1, change: func(c *contents) {
		c.run.Parameters = []byte(`{"links":[` + link + `]}`)
		c.inputs = []input{{name: "gone", files: []runs.GivenFile{{Key: "https://host.example/b.fq?sig=secret", Gone: true}}}}
		c.tasks.add(runs.TraceTask{Node: "a", Shard: 1, Item: link, Tag: "a.fq", Start: noon})
		c.tasks.add(runs.TraceTask{Node: "a", Shard: 2, Item: `[{"r1":` + link + `}]`, Start: noon})
	}}.says(t)
	check(t, d, map[string]string{
		"#item/a/1 value": "https://host.example/a.fq", "#item/a/2 value": `[{"r1":"https://host.example/a.fq"}]`, "#value/links value": `["https://host.example/a.fq"]`,
		"https://host.example/b.fq name": "b.fq",
	})
	if text := fmt.Sprint(d); strings.Contains(text, "secret") {
		t.Error("a secret is in the crate")
	}
}

func TestACrateHasNoEmailAddress(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]map[string]string{
		"user":          {"urn:millrace:user_1 name": "a member of the team", "#run description": "Started by a member of the team."},
		runs.BySchedule: {"urn:millrace:user_1 name": "a member of the team", "#run description": "Started by a schedule of a member of the team."},
		"guest":         {"urn:millrace:user_1 name": "a guest", "#run description": "Started by a guest."},
		runs.ByTrigger:  {"urn:millrace:team_1 name": "a team", "#run description": "Started by a trigger of a member of the team."},
	} {
		p := pretended{definition: everything, change: func(c *contents) {
			c.run.Starter, c.origin.Team = runs.Starter{Type: kind, ID: "user_1", Name: "ada@example.org"}, "ada@example.org's team"
		}}
		check(t, p.says(t), want)
		a, err := p.contents(t).archive(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range a.First {
			if strings.Contains(string(file.Data), "example.org") {
				t.Errorf("%s: an email address is in %s", kind, file.Name)
			}
		}
	}
}

// A guest is not of the team, which answers for the crate. Inputs on other hosts are
// named without what may be a password, and a crate without a license says so.
func TestACrateClaimsNothingThatNobodySaid(t *testing.T) {
	t.Parallel()
	d := pretended{definition: everything, change: elsewhere}.says(t)
	check(t, d, map[string]string{
		"./ license": "map[@id:#no-license]", "workflow.json license": "map[@id:#no-license]", "#no-license name": "No license stated",
		"./ author": "map[@id:urn:millrace:team_1]", "urn:millrace:guest_1 name": "Eve", "urn:millrace:guest_1 affiliation": "<nil>", "#run description": "Started by Eve, a guest.",
		"#files/reads hasPart":  "[map[@id:https://host.example/a%20b.fq] map[@id:https://host.example/a%20b.fq#2] map[@id:urn:millrace:teams/team_1/gone.fq]]",
		"s3://lab/ref/ hasPart": "[map[@id:s3://lab/ref/a.fa] map[@id:s3://lab/ref/b.fa]]", "s3://lab/ref/ exampleOfWork": "map[@id:#input/ref]",
	})
}
