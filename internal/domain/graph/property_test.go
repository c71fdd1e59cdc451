package graph

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace/millrace/internal/domain/graph/layout"
)

// sketch is a definition that a property draws: well-formed, with edges that
// lead from earlier to later nodes.
type sketch struct {
	nodes []string
	edges []string
	extra []string
}

func draw(t *rapid.T, places bool) sketch {
	var s sketch
	count := rapid.IntRange(0, 12).Draw(t, "nodes")
	for i := range count {
		fields := []string{fmt.Sprintf(`"id":"n%d"`, i), `"outputs":{"o":{"path":"o"}}`}
		if places && rapid.Bool().Draw(t, "placed") {
			fields = append(fields, fmt.Sprintf(`"position":{"x":%d,"y":%d}`,
				rapid.IntRange(-2000, 2000).Draw(t, "x"), rapid.IntRange(-2000, 2000).Draw(t, "y")))
		}
		if rapid.Bool().Draw(t, "busy") {
			fields = append(fields, fmt.Sprintf(`"command":%q,"timeoutSeconds":%d,"x-own":[1,{"a":null}]`,
				rapid.StringMatching(`[a-z $"\\äß]{0,12}`).Draw(t, "command"), rapid.IntRange(1, 9999).Draw(t, "timeout")))
		}
		s.nodes = append(s.nodes, "{"+strings.Join(rapid.Permutation(fields).Draw(t, "fields"), ",")+"}")
	}
	for i := range count * 2 {
		if count < 2 {
			break
		}
		source := rapid.IntRange(0, count-2).Draw(t, "source")
		target := rapid.IntRange(source+1, count-1).Draw(t, "target")
		handles := rapid.SampledFrom([]string{"", `,"sourceHandle":"o","targetHandle":"i"`}).Draw(t, "handles")
		s.edges = append(s.edges, fmt.Sprintf(`{"id":"e%d","source":"n%d","target":"n%d"%s}`, i, source, target, handles))
	}
	s.extra = []string{fmt.Sprintf(`"x-n":%d`, rapid.IntRange(0, 5).Draw(t, "extra")), `"ui":{"zoom":1}`, `"version":1`}
	return s
}

func (s sketch) String() string {
	parts := append([]string{`"nodes":[` + strings.Join(s.nodes, ",") + `]`, `"edges":[` + strings.Join(s.edges, ",") + `]`}, s.extra...)
	return "{" + strings.Join(parts, ",") + "}"
}

func mustParse(t *rapid.T, src string) *Graph {
	g, problems := Parse([]byte(src))
	if len(problems) > 0 {
		t.Fatalf("%s\nrefused: %v", src, problems)
	}
	return g
}

func TestWritingAndReadingChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := mustParse(t, draw(t, true).String())
		again := mustParse(t, string(g.JSON()))
		if !bytes.Equal(g.JSON(), again.JSON()) || g.Fingerprint() != again.Fingerprint() || Changes(g, again) != "" {
			t.Fatalf("%s\nbecame\n%s", g.JSON(), again.JSON())
		}
		if canonical := mustParse(t, string(g.Canonical())); canonical.Fingerprint() != g.Fingerprint() {
			t.Fatalf("the canonical form has another fingerprint: %s", g.Canonical())
		}
	})
}

func TestTheFingerprintIsBlindToOrderAndLooks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, true)
		shuffled := sketch{
			nodes: rapid.Permutation(s.nodes).Draw(t, "nodes"),
			edges: rapid.Permutation(s.edges).Draw(t, "edges"),
			extra: rapid.Permutation(s.extra).Draw(t, "extra"),
		}
		other := strings.NewReplacer(`"position":{`, `"position":{"ui":0,`, `"zoom":1`, `"zoom":2`, `"timeoutSeconds":`, "\n\"timeoutSeconds\" : ", `"x-own":[1,`, `"x-own":[10.0e-1,`).Replace(shuffled.String())
		if mustParse(t, s.String()).Fingerprint() != mustParse(t, other).Fingerprint() {
			t.Fatalf("%s\nand\n%s\ndiffer", s, other)
		}
	})
}

func TestTheFingerprintSeesAnyOtherChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, true)
		before := mustParse(t, s.String())
		switch what := rapid.SampledFrom([]string{"node", "edge", "extra", "field"}).Draw(t, "what"); {
		case what == "node":
			s.nodes = append(s.nodes, `{"id":"other"}`)
		case what == "edge" && len(s.edges) > 0:
			s.edges = s.edges[1:]
		case what == "field" && len(s.nodes) > 0:
			s.nodes[0] = strings.Replace(s.nodes[0], "{", `{"cache":false,`, 1)
		default:
			s.extra[0] = `"x-n":6`
		}
		if after := mustParse(t, s.String()); after.Fingerprint() == before.Fingerprint() {
			t.Fatalf("%s\nhas the fingerprint of\n%s", after.JSON(), before.JSON())
		}
	})
}

func TestTheLayoutCoversNothingAndReadsFromLeftToRight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := draw(t, rapid.Bool().Draw(t, "places")).String()
		g := mustParse(t, src)
		fixed := fixedNodes(src)
		for i, a := range g.Nodes {
			for _, b := range g.Nodes[:i] {
				if !(fixed[a.ID] && fixed[b.ID]) && overlap(a.Position, b.Position) {
					t.Fatalf("%s covers %s in\n%s", a.ID, b.ID, g.JSON())
				}
			}
		}
		for _, e := range g.Edges {
			if !fixed[e.Target] && e.source.Position.X+layout.ColumnWidth > e.target.Position.X+0.001 {
				t.Fatalf("%s points backwards in\n%s", e.ID, g.JSON())
			}
		}
	})
}

// fixedNodes are those that have a position in the source.
func fixedNodes(src string) map[string]bool {
	root, _ := read([]byte(src), nil, &problems{})
	fixed := map[string]bool{}
	for _, n := range root.member("nodes").items {
		fixed[n.member("id").text] = n.member("position") != nil
	}
	return fixed
}

func overlap(a, b Position) bool {
	const almost = 0.001
	return math.Abs(a.X-b.X) < layout.ColumnWidth-almost && math.Abs(a.Y-b.Y) < layout.RowHeight-almost
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		example, `{}`, `[]`, `{"nodes":[{"id":"a"},{"id":"b"}],"edges":[{"id":"e","source":"a","target":"b"}]}`,
		`{"parameters":{"p":{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"type":"integer"}},"default":[1e0]}}}`,
		pair(`{"id":"e","source":"a","target":"b"},{"id":"f","source":"b","target":"a"}`),
		graphWith(`"when":"params.n > 1 && inputs.ref == ''"`), graphWith(`"scatter":{"over":"nodes.b.outputs.each"}`),
		`{"nodes":[{"id":"a","position":{"x":1e9,"y":-0.0}},{"id":"b"}],"x-a":-0.10e-5}`, `{"x-a":"\ud83d\ude00","ui":"\u0000"}`, `[[[[[[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		salvaged, problems := Salvage(data)
		again, _ := Salvage(salvaged.JSON())
		if !bytes.Equal(salvaged.JSON(), again.JSON()) {
			t.Fatalf("salvaged as\n%s\nthen\n%s", salvaged.JSON(), again.JSON())
		}
		salvaged.Incomplete()
		g, malformed := Parse(data)
		if len(malformed) != len(problems) {
			t.Fatalf("Parse found %v, Salvage %v", malformed, problems)
		}
		if len(malformed) > 0 {
			return
		}
		stored, malformed := Parse(g.JSON())
		if len(malformed) > 0 || stored.Fingerprint() != g.Fingerprint() || !bytes.Equal(stored.JSON(), g.JSON()) {
			t.Fatalf("%s\nwas stored as\n%s\n%v", data, g.JSON(), malformed)
		}
		g.CheckParameters(nil)
	})
}
