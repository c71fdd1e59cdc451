package admission

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
)

// needing makes runs of a line need an image.
func needing(l TeamQueue) TeamQueue {
	for i := range l.Waiting {
		l.Waiting[i].Needs = []Need{{Image, "alpine:3"}}
	}
	return l
}

func names(list []Candidate) (ids []ids.Run) {
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestARunIsPreparedBeforeItTakesRoom(t *testing.T) {
	t.Parallel()
	elsewhere := needing(waiting("a", 1, 1))
	elsewhere.Waiting[0].PreparedBy = "another worker"
	forgotten := needing(waiting("a", 1))
	forgotten.Waiting[0].PreparedBy = "w"
	for name, tt := range map[string]struct {
		preparing       map[ids.Run]bool
		used            int
		lines           []TeamQueue
		admit, toFetch  string
		withoutPreparer bool
	}{
		"one that needs nothing passes it":     {nil, 0, []TeamQueue{needing(waiting("a", 4)), waiting("b", 4)}, "[b0]", "[a0]", false},
		"it starts once it is ready":           {map[ids.Run]bool{"a0": true}, 0, []TeamQueue{needing(waiting("a", 4)), waiting("b", 4)}, "[a0]", "[]", false},
		"not before":                           {map[ids.Run]bool{"a0": false}, 0, []TeamQueue{needing(waiting("a", 4))}, "[]", "[]", false},
		"a full machine prepares all the same": {nil, 4, []TeamQueue{needing(waiting("a", 4))}, "[]", "[a0]", false},
		"teams take turns, four runs of each":  {nil, 0, []TeamQueue{needing(waiting("a", 1, 1, 1, 1, 1)), needing(waiting("b", 1, 1))}, "[]", "[a0 b0 a1 b1 a2 a3]", false},
		"a team whose hosts are slow":          {map[ids.Run]bool{"a0": false, "a1": false, "a2": false, "a3": false}, 0, []TeamQueue{needing(waiting("a", 1, 1, 1, 1, 1)), needing(waiting("b", 1))}, "[]", "[b0]", false},
		"four of a team":                       {map[ids.Run]bool{"a0": true, "a1": true, "a2": true, "a3": true}, 4, []TeamQueue{needing(waiting("a", 1, 1, 1, 1, 1))}, "[]", "[]", false},
		"what another worker does is left":     {nil, 0, []TeamQueue{elsewhere}, "[]", "[a1]", false},
		"what this one forgot is begun again":  {nil, 0, []TeamQueue{forgotten}, "[]", "[a0]", false},
		"who cannot fetch lets it start":       {nil, 0, []TeamQueue{needing(waiting("a", 1))}, "[a0]", "[]", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Claim{Owner: "w", Total: size(4), Most: 10, Prepares: !tt.withoutPreparer, Preparing: tt.preparing}
			if got := names(ToPrepare(c, tt.lines)); fmt.Sprint(got) != tt.toFetch {
				t.Errorf("prepares %v, want %s", got, tt.toFetch)
			}
			if got, passed := Admit(c, size(tt.used), tt.lines); fmt.Sprint(got) != tt.admit || len(passed) > 0 {
				t.Errorf("admitted %v, want %s; passed %v", got, tt.admit, passed)
			}
		})
	}
}

// Ten teams, which one account can make in a day, leave others their preparations.
func TestTeamsOfOneAccountLeaveOthersPreparations(t *testing.T) {
	t.Parallel()
	c := Claim{Owner: "w", Total: size(4), Most: 10, Prepares: true, Preparing: map[ids.Run]bool{}}
	var lines []TeamQueue
	for team := range 10 {
		l := needing(waiting(fmt.Sprint("slow", team, "-"), 1, 1, 1, 1, 1))
		for _, run := range l.Waiting[:maxPreparedTeam] {
			c.Preparing[run.ID] = false
		}
		lines = append(lines, l)
	}
	lines = append(lines, needing(waiting("other", 1)))
	if got := names(ToPrepare(c, lines)); fmt.Sprint(got) != "[other0]" {
		t.Errorf("prepares %v", got)
	}
}

func TestWhatTheFirstNodesNeed(t *testing.T) {
	t.Parallel()
	g, problems := graph.Parse([]byte(`{"nodes":[{"id":"a","command":"true","image":"one"},{"id":"b","command":"true","image":"one"},
		{"id":"c","command":"true"},{"id":"d","command":"true","image":"two"},
		{"id":"p","command":"$SNAKEMAKE_PROGRAM"},{"id":"q","command":"$SNAKEMAKE_PROGRAM -n"}],"edges":[{"id":"e","source":"c","target":"d"},{"id":"f","source":"c","target":"q"}]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := Fetched(NeedsOf(g)); fmt.Sprint(got) != "[{image one}]" {
		t.Errorf("%v are fetched", got)
	}
	if got := NeedsOf(g); fmt.Sprint(got) != "[{image one} {engine snakemake}]" {
		t.Errorf("%v", got)
	}
}
