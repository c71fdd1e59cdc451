package pipeline

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
)

func TestAPipelineIsKnownByTheEngineItsCommandCalls(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[string]Engine{
		`{"id":"a","command":"$NEXTFLOW_PROGRAM run ."}`:                                                    Nextflow,
		`{"id":"a","command":"\"$SNAKEMAKE_PROGRAM\" --cores 2"}`:                                           Snakemake,
		`{"id":"a","command":"$RUN","env":{"RUN":"$SNAKEMAKE_PROGRAM"}}`:                                    Snakemake,
		`{"id":"a","command":"true"},{"id":"b","command":"$NEXTFLOW_PROGRAM run ."}`:                        Nextflow,
		`{"id":"a","command":"nextflow run ."}`:                                                             "",
		`{"id":"a","command":"true"}`:                                                                       "",
		`{"id":"a","command":"$NEXTFLOW_PROGRAM run .","env":{"NEXTFLOW_PROGRAM":"/mine"}}`:                 "", // its own
		`{"id":"a","command":"$NEXTFLOW_PROGRAM; $SNAKEMAKE_PROGRAM","env":{"NEXTFLOW_PROGRAM":"/my/own"}}`: Snakemake,
	} {
		g, problems := graph.Parse([]byte(`{"nodes":[` + nodes + `]}`))
		if len(problems) > 0 {
			t.Fatalf("%s: %+v", nodes, problems)
		}
		if got := Of(g); got != want {
			t.Errorf("%s: %q, want %q", nodes, got, want)
		}
	}
}

func TestEveryEngineHasATitleAVariableAndAWayToGetIt(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range Engines {
		for _, text := range []string{e.Title(), e.Variable(), Install(e)} {
			if text == "" || seen[text] {
				t.Errorf("%s has %q, as another does", e, text)
			}
			seen[text] = true
		}
		if !strings.EqualFold(e.Title(), string(e)) || !strings.Contains(strings.ToLower(Install(e)), string(e)) {
			t.Errorf("%s is called %s, and had by: %s", e, e.Title(), Install(e))
		}
	}
}
