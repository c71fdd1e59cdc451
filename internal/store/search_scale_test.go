package store

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

const manyRuns = 200_000

// TestSearchAmongManyRuns prints how long searches take among 200,000 runs of one
// team, beside the plain filter, which no search can be faster than. They take
// turns, so that what else the machine does falls on both. It is the part search
// of bench/run.
func TestSearchAmongManyRuns(t *testing.T) {
	if os.Getenv("MILLRACE_SCALE") == "" {
		t.Skip("filling the tables takes minutes: set MILLRACE_SCALE")
	}
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		fillWithRuns(t, db, team, owner)
		for more := true; more; {
			done, err := db.IndexRuns(ctx)
			if err != nil {
				t.Fatal(err)
			}
			more = done.More
		}
		if _, err := db.changed(ctx, `ANALYZE`); err != nil { // as the database does of itself, by and by
			t.Fatal(err)
		}
		took := func(f runs.Filter) (time.Duration, int) {
			began := time.Now()
			list, err := db.Runs(ctx, team, f, "", 50)
			if err != nil {
				t.Fatal(err)
			}
			return time.Since(began), len(list)
		}
		plain := runs.Filter{Status: lifecycle.Failed}
		for _, words := range []string{"sample12345", "ample123", "liver", "liver batch17", "align failed", "cohort7 liver sample1", "nothinglikeit"} {
			var search, floor []time.Duration
			found := 0
			for range 15 {
				d, n := took(runs.Filter{Text: words})
				f, _ := took(plain)
				search, floor, found = append(search, d), append(floor, f), n
			}
			slices.Sort(search)
			slices.Sort(floor)
			t.Logf("%-24q %2d found: median %8s, worst %8s; plain filter %8s; ratio %.2f", words, found, search[7].Round(10*time.Microsecond),
				search[14].Round(10*time.Microsecond), floor[7].Round(10*time.Microsecond), float64(search[7])/float64(floor[7]))
		}
	})
}

// fillWithRuns gives a team many runs that have ended.
func fillWithRuns(t *testing.T, db *DB, team ids.Team, owner ids.User) {
	t.Helper()
	tissues := []string{"liver", "heart", "brain", "lung", "skin"}
	for first := 0; first < manyRuns; first += 1000 {
		rows := make([][]any, 0, 1000)
		for i := first; i < first+1000; i++ {
			status := "completed"
			if i%10 == 0 {
				status = "failed"
			}
			rows = append(rows, []any{
				string(ids.NewRun()), team, fmt.Sprintf("wf_%d", i%50), "Trim and align", 1, "{}", fmt.Sprintf(`{"cohort":"cohort%d"}`, i%20), "{}", 2, 8, 0, 1,
				"user", owner, "Ada", status, 1, 1, 1, i + 1, i + 2, i, fmt.Sprintf("sample%d %s", i, tissues[i%len(tissues)]), fmt.Sprintf(`["batch%d"]`, i%100),
			})
		}
		err := db.inTx(t.Context(), func(tx *DB) error {
			return tx.insertRows(t.Context(), `INSERT INTO runs (id, team_id, workflow_id, workflow_name, workflow_revision, definition, parameters, inputs,
				vcpu, ram_gb, gpu, price, starter_type, starter_id, starter_name, status, total_nodes, seq, claimed_at, created_at, finished_at, number, name, tags)`, "", rows)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
