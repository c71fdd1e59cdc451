package reuse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/reuse"
)

const chain = `{"version":1,
	"parameters":{"q":{"type":"integer","default":1}},
	"inputs":{"reads":{"type":"files"}},
	"nodes":[
		{"id":"a","command":"echo $PARAM_q","inputs":{"in":{"from":"inputs.reads","optional":true}},"outputs":{"o":{"path":"a"}}},
		{"id":"b","name":"Middle","command":"two","env":{"X":"1"},"outputs":{"o":{"path":"b"}}},
		{"id":"c","command":"three","outputs":{"o":{"path":"c"}}},
		{"id":"s","command":"each $ITEM","scatter":{"over":"[params.q]"},"outputs":{"o":{"path":"s"}}}],
	"edges":[{"id":"e1","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"},
		{"id":"e2","source":"b","sourceHandle":"o","target":"c","targetHandle":"in"}]}`

func runOf(t *testing.T, definition, parameters string, reads ...string) reuse.Run {
	t.Helper()
	g, wrong := graph.Parse([]byte(definition))
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	values, wrong := g.CheckParameters([]byte(parameters))
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return reuse.Run{Graph: g, Values: values, Inputs: map[string][]string{"reads": reads}}
}

func TestWhatARetryReusesAndWhyNotTheRest(t *testing.T) {
	t.Parallel()
	all := func(s lifecycle.NodeState) map[string]lifecycle.NodeState {
		return map[string]lifecycle.NodeState{"a": s, "b": s, "c": s, "s": s}
	}
	failed := all(lifecycle.NodeSucceeded)
	failed["b"], failed["c"] = lifecycle.NodeFailed, lifecycle.NodePending
	change := func(old, new string) string {
		if !strings.Contains(chain, old) {
			t.Fatalf("%q is not in the definition", old)
		}
		return strings.ReplaceAll(chain, old, new)
	}
	for name, tt := range map[string]struct {
		definition, parameters, reads string
		states                        map[string]lifecycle.NodeState
		deleted                       string
		want                          string
	}{
		"nothing changed":       {chain, `{}`, "k", all(lifecycle.NodeSucceeded), "", "a reused; b reused; c reused; s reused"},
		"a failure":             {chain, `{}`, "k", failed, "", "a reused; b computed: it failed; c computed: it has not run yet; s reused"},
		"a command":             {change(`"two"`, `"zwei"`), `{}`, "k", all(lifecycle.NodeSucceeded), "", "a reused; b computed: its command changed; c depends: it reads files of Middle, which runs again; s reused"},
		"a variable":            {change(`"X":"1"`, `"X":"2"`), `{}`, "k", all(lifecycle.NodeSucceeded), "", "a reused; b computed: its variables changed; c depends: it reads files of Middle, which runs again; s reused"},
		"an image":              {change(`"command":"three"`, `"command":"three","image":"busybox"`), `{}`, "k", all(lifecycle.NodeSucceeded), "", "a reused; b reused; c computed: its image changed; s reused"},
		"an output":             {change(`"path":"c"`, `"path":"d"`), `{}`, "k", all(lifecycle.NodeSucceeded), "", "a reused; b reused; c computed: its outputs are declared differently; s reused"},
		"more memory":           {change(`"command":"three"`, `"command":"three","resources":{"ramGb":2}`), `{}`, "k", all(lifecycle.NodeSucceeded), "", "a reused; b reused; c reused; s reused"},
		"a line":                {change(`"source":"b","sourceHandle"`, `"source":"a","sourceHandle"`), `{}`, "k", all(lifecycle.NodeSucceeded), "", "a reused; b reused; c computed: its inputs changed; s reused"},
		"a parameter":           {chain, `{"q":2}`, "k", all(lifecycle.NodeSucceeded), "", "a computed: the parameter q changed; b depends: it reads files of a, which runs again; c depends: it reads files of Middle, which runs again; s depends: its list of items changed: items that were computed before are reused"},
		"another file":          {chain, `{}`, "other", all(lifecycle.NodeSucceeded), "", "a computed: its inputs changed; b depends: it reads files of a, which runs again; c depends: it reads files of Middle, which runs again; s reused"},
		"outputs that are gone": {chain, `{}`, "k", all(lifecycle.NodeSucceeded), "c", "a reused; b reused; c computed: its outputs were deleted; s reused"},
		"a node that was not":   {change(`"id":"c"`, `"id":"d"`), `{}`, "k", all(lifecycle.NodeSucceeded), "", ""},
		"another interpreter":   {change(`"command":"three"`, `"command":"three","interpreter":"sh"`), `{}`, "k", all(lifecycle.NodeSucceeded), "", "a reused; b reused; c computed: its interpreter changed; s reused"},
		"skipped before":        {chain, `{}`, "k", map[string]lifecycle.NodeState{"a": "skipped", "b": "cancelled", "c": "pending", "s": "succeeded"}, "", "a computed: it was skipped; b computed: it was cancelled; c computed: it has not run yet; s reused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			definition, want := tt.definition, tt.want
			if want == "" { // a new node in the place of the last one
				definition = strings.ReplaceAll(definition, `"target":"c"`, `"target":"d"`)
				want = "a reused; b reused; d computed: it is new; s reused"
			}
			before := reuse.Ended{Run: runOf(t, chain, `{}`, "k"), States: tt.states, Deleted: map[string]bool{tt.deleted: true}}
			var got []string
			for _, n := range reuse.Foretell(before, runOf(t, definition, tt.parameters, tt.reads)) {
				text := fmt.Sprintf("%s %s", n.ID, n.Expect)
				if n.Reason != "" {
					text += ": " + n.Reason
				}
				got = append(got, text)
			}
			for _, each := range strings.Split(want, "; ") {
				found := false
				for _, have := range got {
					found = found || have == each
				}
				if !found {
					t.Errorf("want %q, have %q", each, got)
				}
			}
		})
	}
}

func TestForetellCountsItemsOfScatter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		old, new string // replaced in the definition
		state    lifecycle.NodeState
		want     string
	}{
		"items failed":            {"", "", lifecycle.NodeFailed, "computed 3 of 200 items failed {197 3 3}"},
		"all succeeded":           {"", "", lifecycle.NodeSucceeded, "reused  {200 0 0}"},
		"the command changed":     {"each $ITEM", "other $ITEM", lifecycle.NodeFailed, "computed 3 of 200 items failed {0 200 3}"},
		"the list changed":        {"[params.q]", "[params.q, 2]", lifecycle.NodeFailed, "computed 3 of 200 items failed. The others are reused if nothing about them changed <nil>"},
		"it was cancelled":        {"", "", lifecycle.NodeCancelled, "computed it was cancelled {197 3 3}"},
		"a step before it is new": {`"edges":[`, `"edges":[{"id":"new","source":"x","target":"s"},`, lifecycle.NodeFailed, "computed 3 of 200 items failed. The others are reused if nothing about them changed <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := reuse.Ended{
				Run:    runOf(t, chain, `{}`, "k"),
				States: map[string]lifecycle.NodeState{"s": tt.state},
				Items:  map[string]reuse.Items{"s": {Total: 200, Failed: 3, Kept: 197}},
			}
			definition := chain
			if tt.old != "" {
				definition = strings.Replace(chain, tt.old, tt.new, 1)
			}
			if strings.Contains(definition, `"source":"x"`) {
				definition = strings.Replace(definition, `"nodes":[`, `"nodes":[{"id":"x","command":"x"},`, 1)
			}
			for _, n := range reuse.Foretell(before, runOf(t, definition, `{}`, "k")) {
				if n.ID != "s" {
					continue
				}
				items := "<nil>"
				if n.Items != nil {
					items = fmt.Sprint(*n.Items)
				}
				if got := fmt.Sprintf("%s %s %s", n.Expect, n.Reason, items); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			}
		})
	}
}
