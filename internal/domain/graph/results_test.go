package graph_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
)

func TestResultsAreDeclaredOrThoseOfTheLastNodes(t *testing.T) {
	t.Parallel()
	nodes := func(c string) string {
		return `"nodes":[{"id":"a","command":"x","outputs":{"o":{"path":"o"}}},{"id":"b","command":"x","inputs":{"i":{}},"outputs":{"o":{"path":"o"},"p":{"path":"p"}}},{"id":"c","command":"x","outputs":{"o":{"path":"o"}}` + c + `}]`
	}
	const edges = `"edges":[{"id":"1","source":"a","sourceHandle":"o","target":"b","targetHandle":"i"},{"id":"2","source":"b","target":"c"}]`
	for name, tt := range map[string]struct{ definition, want string }{
		"the last nodes":           {`{` + nodes("") + `}`, "a.o b.o b.p c.o"},
		"an edge sets the order":   {`{` + nodes("") + `,` + edges + `}`, "b.o b.p c.o"},
		"a scatter reads its list": {`{` + nodes(`,"scatter":{"over":"nodes.b.outputs.o"}`) + `,` + edges + `}`, "c.o"},
		"declared ones":            {`{` + nodes("") + `,` + edges + `,"outputs":{"all":{"from":"a.o"},"more":{"from":"b.p"}}}`, "a.o b.p"},
		"no definition":            {``, "a.o b.o b.p c.o"},
	} {
		g, _ := graph.Salvage([]byte(tt.definition))
		is := g.Results()
		var got []string
		for _, output := range []string{"a.o", "b.o", "b.p", "c.o"} {
			if node, port, _ := strings.Cut(output, "."); is(node, port) {
				got = append(got, output)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %v, want %s", name, got, tt.want)
		}
	}
}
