package store

import (
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/runs/crate"
)

// The license of a run is the one that its workflow states now.
func TestARunKnowsTheLicenseOfItsWorkflow(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ada, eve := signedUp(t, db, "ada@example.org"), signedUp(t, db, "eve@example.org")
		team, ctx := ada.Team.ID, t.Context()
		w := newWorkflow(t, db, team, ada.ID)
		r := newRun(team)
		r.Workflow, r.Price = w.ID, 0
		must(t, db.SubmitRun(ctx, r, 0, nil))
		wants := func(license string) {
			t.Helper()
			o, err := db.OriginOf(ctx, team, r.ID)
			if want := (crate.Origin{Team: ada.Team.Name, License: license}); err != nil || o != want {
				t.Errorf("%+v, want %+v: %v", o, want, err)
			}
		}
		wants("")
		stored, err := db.Workflow(ctx, team, w.ID)
		must(t, err)
		stored.License = "MIT"
		if saved, err := db.SaveWorkflow(ctx, stored, nil); err != nil || !saved {
			t.Fatal(saved, err)
		}
		wants("MIT")
		if _, err := db.OriginOf(ctx, eve.Team.ID, r.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team finds it: %v", err)
		}
		must(t, db.DeleteWorkflow(ctx, team, w.ID, "ada", db.Now()))
		wants("")
	})
}
