package store

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
)

func TestTheListOfWorkflowsHasTheirNewestRuns(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ada := signedUp(t, db, "ada@example.org")
		team, ctx := ada.Team.ID, t.Context()
		many, few, none := newWorkflow(t, db, team, ada.ID), newWorkflow(t, db, team, ada.ID), newWorkflow(t, db, team, ada.ID)
		want := map[ids.Workflow][]ids.Run{}
		for range 12 {
			for _, w := range []ids.Workflow{many.ID, few.ID} {
				if w == few.ID && len(want[w]) == 2 {
					continue
				}
				r := newRun(team)
				r.Workflow, r.Price = w, 0
				must(t, db.SubmitRun(ctx, r, 0, nil))
				want[w] = append([]ids.Run{r.ID}, want[w]...) // the newest first
			}
		}
		want[many.ID] = want[many.ID][:10]
		list, err := db.Workflows(ctx, team, "", 10)
		if err != nil || len(list) != 3 {
			t.Fatalf("%d workflows, %v", len(list), err)
		}
		for _, w := range list {
			var got []ids.Run
			for _, r := range w.LastRuns {
				got = append(got, r.ID)
			}
			if !slices.Equal(got, want[w.ID]) {
				t.Errorf("%v, want %v (%s has none)", got, want[w.ID], none.ID)
			}
		}
	})
}

// However many runs a server has, PostgreSQL goes to those of a workflow by an index.
func TestTheListOfWorkflowsReadsTheRunsThatItShows(t *testing.T) {
	t.Parallel()
	var asked []string
	db, err := Open(t.Context(), Options{URL: databases.Postgres(t), SecretKey: "a secret key for tests only", Statement: func(s string) { asked = append(asked, s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	ada := signedUp(t, db, "ada@example.org")
	r := newRun(ada.Team.ID)
	r.Workflow, r.Price = newWorkflow(t, db, ada.Team.ID, ada.ID).ID, 0
	must(t, db.SubmitRun(t.Context(), r, 0, nil))
	asked = nil
	if _, err := db.Workflows(t.Context(), ada.Team.ID, "", 10); err != nil {
		t.Fatal(err)
	}
	explain, err := db.pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer explain.Close()
	if _, err := explain.ExecContext(t.Context(), `SET enable_seqscan = off`); err != nil { // as where there are many
		t.Fatal(err)
	}
	plan := planOf(t, explain, asked[len(asked)-1])
	if !strings.Contains(plan, "Index Cond: (workflow_id = w.id)") || strings.Contains(plan, "SubPlan") {
		t.Errorf("%s\n%s", asked[len(asked)-1], plan)
	}
}
