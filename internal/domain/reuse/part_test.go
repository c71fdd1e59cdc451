package reuse

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
)

// three are tasks one after the other, and one beside them.
const three = `{"version":1,
	"parameters":{"q":{"type":"integer","default":1},"who":{"type":"string","default":"x"},"list":{"type":"array","items":{"type":"integer"},"default":[1]}},
	"inputs":{"reads":{"type":"file"},"index":{"type":"file"}},
	"nodes":[
		{"id":"a","command":"a $PARAM_q","inputs":{"in":{"from":"inputs.reads"}},"outputs":{"o":{"path":"o"}}},
		{"id":"b","command":"b","outputs":{"o":{"path":"o"},"log":{"path":"log"}}},
		{"id":"c","command":"c","when":"params.who != ''","scatter":{"over":"params.list"},"outputs":{"o":{"path":"o"}}},
		{"id":"beside","command":"x $PARAM_who","inputs":{"in":{"from":"inputs.index"}}},
		{"id":"note","type":"note","text":"n"}],
	"edges":[{"id":"ab","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"},{"id":"bc","source":"b","target":"c"}],
	"outputs":{"all":{"from":"c.o"}}}`

// part is what Part makes, read again.
func part(t *testing.T, now, earlier string, only []string, done ...string) *graph.Graph {
	t.Helper()
	finished := map[string]bool{}
	for _, id := range done {
		finished[id] = true
	}
	definition, wrong, err := Part([]byte(now), []byte(earlier), only, finished)
	if err != nil || len(wrong) > 0 {
		t.Fatalf("%v: %v, %v", only, wrong, err)
	}
	g, problems := graph.Parse(definition)
	if len(problems) > 0 {
		t.Fatalf("%v: %+v in %s", only, problems, definition)
	}
	return g
}

// partNames are the names of what is in a graph, in their order.
func partNames(g *graph.Graph) string {
	var nodes, parameters, inputs []string
	for _, n := range g.Nodes {
		nodes = append(nodes, n.ID)
	}
	for _, p := range g.Parameters {
		parameters = append(parameters, p.Name)
	}
	for _, i := range g.Inputs {
		inputs = append(inputs, i.Name)
	}
	var written struct {
		Outputs map[string]struct{ From string }
	}
	_ = json.Unmarshal(g.JSON(), &written)
	var outputs []string
	for _, o := range written.Outputs {
		outputs = append(outputs, o.From)
	}
	for _, list := range [][]string{nodes, parameters, inputs, outputs} {
		slices.Sort(list)
	}
	return strings.Join([]string{strings.Join(nodes, " "), strings.Join(parameters, " "), strings.Join(inputs, " "), strings.Join(outputs, " ")}, "; ")
}

func TestAPartHasWhatItNeedsAndNothingElse(t *testing.T) {
	t.Parallel()
	for only, want := range map[string]string{
		"a":      "a; q; reads; a.o",
		"b":      "a b; q; reads; b.log b.o",
		"c":      "a b c; list q who; reads; c.o",
		"beside": "beside; who; index; ",
		"c a":    "a b c; list q who; reads; a.o c.o",
		"a a":    "a; q; reads; a.o",
	} {
		if got := partNames(part(t, three, three, strings.Fields(only))); got != want {
			t.Errorf("only %s has %s, want %s", only, got, want)
		}
	}
}

// A command that takes all parameters together names none of them.
func TestAPartThatTakesAllParametersKeepsThem(t *testing.T) {
	t.Parallel()
	for _, node := range []string{`"command":"nextflow -params-file $PARAMS_FILE"`, `"command":"x","env":{"FILE":"$PARAMS_FILE"}`} {
		g := part(t, strings.Replace(three, `"command":"b"`, node, 1), three, []string{"b"})
		if got := partNames(g); got != "a b; list q who; reads; b.log b.o" {
			t.Errorf("%s: %s", node, got)
		}
	}
}

func TestWhatIsDoneIsTakenAsItWas(t *testing.T) {
	t.Parallel()
	now := strings.Replace(three, "a $PARAM_q", "new $PARAM_q", 1)
	for name, tt := range map[string]struct {
		only []string
		done []string
		want string // the command of a
	}{
		"done before":              {[]string{"c"}, []string{"a", "b"}, "a $PARAM_q"},
		"not done":                 {[]string{"c"}, []string{"b"}, "new $PARAM_q"},
		"done, and wanted anew":    {[]string{"a", "c"}, []string{"a", "b"}, "new $PARAM_q"},
		"done, but what follows":   {[]string{"b"}, []string{"a"}, "a $PARAM_q"},
		"not there when it was so": {[]string{"a"}, []string{"a", "gone"}, "new $PARAM_q"},
	} {
		n, _ := part(t, now, three, tt.only, tt.done...).Node("a")
		if n.Command != tt.want {
			t.Errorf("%s: %s, want %s", name, n.Command, tt.want)
		}
	}
	// Old and new that do not fit together: b needs an output that a did not have.
	unfit := strings.NewReplacer(`"outputs":{"o":{"path":"o"}}},
		{"id":"b"`, `"outputs":{"fresh":{"path":"o"}}},
		{"id":"b"`, `"sourceHandle":"o"`, `"sourceHandle":"fresh"`).Replace(now)
	n, _ := part(t, unfit, three, []string{"b"}, "a").Node("a")
	if n.Command != "new $PARAM_q" {
		t.Errorf("where they do not fit: %s", n.Command)
	}
}

func TestOutputsOfTheSameNameAreAllHandedOut(t *testing.T) {
	t.Parallel()
	const same = `{"version":1,"nodes":[
		{"id":"a","command":"a","outputs":{"o":{"path":"o"},"output_2":{"path":"p"}}},
		{"id":"b","command":"b","outputs":{"o":{"path":"o"}}},
		{"id":"c","command":"c","outputs":{"o":{"path":"o"},"output_3":{"path":"p"}}}],"edges":[],"outputs":{}}`
	want := "a b c; ; ; a.o a.output_2 b.o c.o c.output_3"
	if got := partNames(part(t, same, same, []string{"a", "b", "c"})); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWhatIsNoTaskIsNamed(t *testing.T) {
	t.Parallel()
	_, wrong, err := Part([]byte(three), []byte(three), []string{"a", "nothing", "note", ""}, nil)
	var paths []string
	for _, d := range wrong {
		paths = append(paths, d.Path)
	}
	if err != nil || !slices.Equal(paths, []string{"only[1]", "only[2]", "only[3]"}) || !strings.Contains(wrong[0].Message, "`nothing`") {
		t.Errorf("%+v, %v", wrong, err)
	}
	for now, earlier := range maps.All(map[string]string{`{`: three, three: `[]`}) {
		if _, _, err := Part([]byte(now), []byte(earlier), []string{"a"}, nil); err == nil {
			t.Errorf("%.10s and %.10s are read", now, earlier)
		}
	}
}
