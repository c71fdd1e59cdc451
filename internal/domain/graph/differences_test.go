package graph

import (
	"slices"
	"strings"
	"testing"
)

func TestDifferencesAreSaidLineByLine(t *testing.T) {
	t.Parallel()
	const was = `{"parameters":{"q":{"type":"integer","default":1}},"nodes":[
		{"id":"a","name":"Align","command":"bwa","resources":{"vcpu":2},"position":{"x":1,"y":2}},
		{"id":"b","name":"Sort","command":"sort"}],
		"edges":[{"id":"e","source":"a","target":"b"}]}`
	for name, tt := range map[string]struct {
		from, to string
		want     []string
	}{
		"nothing":             {`"bwa"`, `"bwa"`, nil},
		"where it is drawn":   {`"x":1`, `"x":100`, nil},
		"the order of fields": {`"name":"Sort","command":"sort"`, `"command":"sort","name":"Sort"`, nil},
		"a command":           {`"bwa"`, `"bwa2"`, []string{"changed Align: command"}},
		"a field that is new": {`"command":"sort"`, `"command":"sort","cache":true`, []string{"changed Sort: cache"}},
		"a field that went":   {`"resources":{"vcpu":2},`, ``, []string{"changed Align: resources"}},
		"several fields":      {`"command":"bwa","resources":{"vcpu":2}`, `"command":"x","resources":{"vcpu":4}`, []string{"changed Align: command, resources"}},
		"a node that is new":  {`"nodes":[`, `"nodes":[{"id":"n","name":"New","command":"x"},`, []string{"added New"}},
		"a node that went": {
			`,
		{"id":"b","name":"Sort","command":"sort"}],
		"edges":[{"id":"e","source":"a","target":"b"}]`, `],"edges":[]`,
			[]string{"removed Sort", "changed connections"},
		},
		"another id":    {`"id":"b","name":"Sort"`, `"id":"b2","name":"Sort"`, []string{"added Sort", "removed Sort", "changed connections"}},
		"a parameter":   {`"default":1`, `"default":2`, []string{"changed parameters"}},
		"an input":      {`"nodes"`, `"inputs":{"reads":{"type":"file"}},"nodes"`, []string{"changed inputs"}},
		"a long name":   {`"Sort"`, `"` + strings.Repeat("ö", 100) + `"`, []string{"changed " + strings.Repeat("ö", 29) + "…: name"}},
		"where code is": {`{"parameters"`, `{"source":{"git":"https://example.org/x"},"parameters"`, []string{"changed other fields"}},
	} {
		changed := strings.Replace(was, tt.from, tt.to, 1)
		if name == "another id" {
			changed = strings.Replace(changed, `"target":"b"`, `"target":"b2"`, 1)
		}
		before, problems := Parse([]byte(was))
		after, more := Parse([]byte(changed))
		if len(problems)+len(more) > 0 {
			t.Fatalf("%s: %+v %+v", name, problems, more)
		}
		if got := Differences(before, after); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
