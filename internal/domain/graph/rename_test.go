package graph

import (
	"fmt"
	"strings"
	"testing"
)

func TestRenameChangesWhatNamesTheThing(t *testing.T) {
	const definition = `{
		"parameters":{"reads":{"type":"integer","default":1}},
		"inputs":{"reads":{"type":"files"},"other":{"type":"files"}},
		"nodes":[
			{"id":"trim","command":"x","inputs":{"reads":{"from":"inputs.reads"}},"outputs":{"reads":{"path":"o"},"log":{"path":"l"}},"when":"params.reads > 0 && inputs.reads.size() > 0"},
			{"id":"reads","command":"x","scatter":{"over":%s},"outputs":{"reads":{"path":"r"}}},
			{"id":"last","command":"x","when":"nodes.reads.outputs.reads.size() > 0 && nodes.trim.outputs.reads != \"reads\""}],
		"edges":[{"id":"e","source":"trim","target":"reads"},{"id":"f","source":"reads","target":"last"}],
		"outputs":{"one":{"from":"trim.reads"},"two":{"from":"reads.reads"},"three":{"from":"trim.log"}}}`
	for name, tt := range map[string]struct {
		over string
		what Name
		want string
	}{
		"an input": {
			"inputs.reads",
			Name{Kind: KindInput, Name: "reads"},
			`nodes.trim.inputs.reads.from=inputs.new; nodes.trim.when=params.reads > 0 && inputs.new.size() > 0; nodes.reads.scatter.over=inputs.new`,
		},
		"a parameter": {
			"[params.reads]",
			Name{Kind: KindParameter, Name: "reads"},
			`nodes.trim.when=params.new > 0 && inputs.reads.size() > 0; nodes.reads.scatter.over=[params.new]`,
		},
		"a step": {
			"[nodes.trim.outputs.reads]",
			Name{Kind: KindStep, Name: "trim"},
			`nodes.reads.scatter.over=[nodes.new.outputs.reads]; nodes.last.when=nodes.reads.outputs.reads.size() > 0 && nodes.new.outputs.reads != "reads"; outputs.one.from=new.reads; outputs.three.from=new.log`,
		},
		"an output of a step": {
			"[nodes.trim.outputs.reads]",
			Name{Kind: KindOutput, Node: "trim", Name: "reads"},
			`nodes.reads.scatter.over=[nodes.trim.outputs.new]; nodes.last.when=nodes.reads.outputs.reads.size() > 0 && nodes.trim.outputs.new != "reads"; outputs.one.from=trim.new`,
		},
		"an input of a step, with the name of its output": {
			"[nodes.trim.outputs.reads]",
			Name{Kind: "port", Node: "trim", Name: "reads"},
			``,
		},
		"a variable of the same name hides it": {
			"[{'reads': 1}].map(inputs, inputs.reads)",
			Name{Kind: KindInput, Name: "other"},
			``,
		},
		"white space, comments, escapes and has": {
			"has(inputs . // reads\n  `reads`) ? inputs.\treads + inputs.reads.map(x, 'é' + 'inputs.reads') : []",
			Name{Kind: KindInput, Name: "reads"},
			"nodes.trim.inputs.reads.from=inputs.new; nodes.trim.when=params.reads > 0 && inputs.new.size() > 0; nodes.reads.scatter.over=has(inputs . // reads\n  `new`) ? inputs.\tnew + inputs.new.map(x, 'é' + 'inputs.reads') : []",
		},
		"through a variable": {
			"[inputs].map(i, i.reads.size())",
			Name{Kind: KindInput, Name: "reads"},
			"nodes.trim.inputs.reads.from=inputs.new; nodes.trim.when=params.reads > 0 && inputs.new.size() > 0; nodes.reads.scatter.over=[inputs].map(i, i.new.size())",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, malformed := Parse(fmt.Appendf(nil, definition, quoteJSON(tt.over)))
			if len(malformed) > 0 {
				t.Fatal(malformed)
			}
			var got []string
			for _, e := range g.Rename(tt.what, "new") {
				got = append(got, e.Path+"="+e.Value.(string))
			}
			if strings.Join(got, "; ") != tt.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), tt.want)
			}
		})
	}
}

// quoteJSON is a text as a JSON string.
func quoteJSON(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}
