package reported

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// wordy is an attempt with texts of any length, some of them not said.
func wordy(r *rand.Rand) Task {
	text := func() string { return strings.Repeat("x", max(0, r.IntN(40)-10)) }
	return Task{
		ID: fmt.Sprint(r.IntN(4)), Chain: "c", Node: fmt.Sprint("n", r.IntN(2)), Number: r.IntN(4), Attempt: 1, State: Running, Version: r.Int64N(9),
		Name: text(), Script: text(), Message: text(), Details: Details{WorkDir: text(), Container: text(), Host: text(), NativeID: text(), Queue: text()},
	}
}

// What is counted of a team's texts is what is kept of them, whatever replaces what: it
// would else never be given back, or be used for ever.
func TestTextsAreCountedAsTheyAreKept(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := emptyPicture()
		room := r.Int64N(600)
		p.TeamTexts = MaxTeamTexts - room // little is left, for some
		var counted int64
		for i := range 40 {
			c := p.Merge(Report{Tasks: []Task{wordy(r), wordy(r)}, Log: []LogText{{int64(i + 1), strings.Repeat("l", r.IntN(9))}}}, noon)
			p.LastSeq = int64(i + 1)
			counted += c.Texts - int64(len(c.Log))
			p.TeamTexts += c.Texts
			var kept int64
			for _, row := range p.Rows {
				kept += int64(len(row.Script)+len(row.Message)) + row.shortTexts()
				if int64(len(row.Script)) != row.ScriptSize || int64(len(row.Message)) != row.MessageSize {
					t.Fatalf("seed %d: a script of %d bytes counts as %d, a message of %d as %d", seed, len(row.Script), row.ScriptSize, len(row.Message), row.MessageSize)
				}
			}
			if counted != kept {
				t.Fatalf("seed %d, report %d: %d bytes are counted, %d are kept", seed, i, counted, kept)
			}
			if p.TeamTexts > MaxTeamTexts+1000 {
				t.Fatalf("seed %d: %d bytes beyond the limit", seed, p.TeamTexts-MaxTeamTexts)
			}
		}
	}
}
