package store

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/waittest"
)

// A queued run is cancelled while a worker is about to take it: it stays
// cancelled. SQLite has one writer, who sees what the one before has done.
func TestARunThatIsCancelledMeanwhileIsNotTaken(t *testing.T) {
	eachLedger(t, func(t *testing.T, db *DB) {
		if db.dialect.name != postgresDialect.name {
			t.Skip("two writers need PostgreSQL")
		}
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := newRun(team)
		if err := db.SubmitRun(ctx, r, 60*r.Price, nil); err != nil {
			t.Fatal(err)
		}
		cancelling, err := db.pool.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer cancelling.Rollback()
		if _, err := cancelling.ExecContext(ctx, `UPDATE runs SET status = 'cancelled' WHERE id = $1`, r.ID); err != nil {
			t.Fatal(err)
		}
		type answer struct {
			runs.Claimed
			err error
		}
		answers := make(chan answer, 1)
		go func() {
			got, err := db.ClaimRuns(ctx, claim("w1", 10), august, august.Add(time.Minute))
			answers <- answer{got, err}
		}()
		if !waittest.Until(func() bool {
			var waits bool
			err := db.pool.QueryRowContext(ctx, `
				SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
			return err != nil || waits
		}) {
			t.Fatal("the claim does not wait for who cancels")
		}
		if err := cancelling.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := <-answers; got.err != nil || len(got.Runs) != 0 {
			t.Errorf("it was taken: %+v, %v", got.Runs, got.err)
		}
	})
}
