package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

func TestOldestAndNewestOutputsAreNamedOnceAndNoUploads(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, owner := newTeam(t, db)
		uploaded(t, db, team, owner, "teams/a/upload", 10)
		r := started(t, db, team, `{}`)
		var made []runs.Output
		for i := range 6 {
			key := fmt.Sprint("teams/a/runs/", i)
			made = append(made, runs.Output{Key: key, Blob: key, Node: "n", Port: "p", Shard: i, Name: "out", Size: 1, Mark: fmt.Sprint("mark ", i)})
		}
		must(t, db.EndRun(t.Context(), r.ID, r.Fence, runs.Ending{Status: lifecycle.Completed, Last: &runs.Step{Outputs: made}}, august))
		for limit, want := range map[int][]int{4: {0, 1, 4, 5}, 100: {0, 1, 2, 3, 4, 5}} {
			list, err := db.OldestAndNewestOutputs(t.Context(), limit)
			if err != nil {
				t.Fatal(err)
			}
			var marks, wanted []string
			for _, o := range list {
				marks = append(marks, o.Mark)
			}
			for _, i := range want {
				wanted = append(wanted, fmt.Sprint("mark ", i))
			}
			if !slices.Equal(marks, wanted) {
				t.Errorf("of %d: %q", limit, marks)
			}
		}
	})
}
