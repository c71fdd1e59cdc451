package store

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/sizetest"
	"github.com/millrace/millrace/internal/waittest"
)

// A queued run is cancelled while a worker is about to take it: it stays
// cancelled. SQLite has one writer, who sees what the one before has done.
func TestARunThatIsCancelledMeanwhileIsNotTaken(t *testing.T) {
	t.Parallel()
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

// The clocks of a server and of the workers of its runs may differ a little: the times
// of a run are in order all the same.
func TestTimesOfARunAreInOrder(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		cancelled, run := submit(t, db, team), submit(t, db, team)
		if _, err := db.CancelRun(ctx, team, cancelled.ID, runs.Starter{Name: "Ada"}, cancelled.CreatedAt.Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		claimed, err := db.ClaimRuns(ctx, claim("w1", 10), run.CreatedAt.Add(-time.Second), run.CreatedAt.Add(time.Minute))
		if err != nil || len(claimed.Runs) != 1 {
			t.Fatalf("%+v, %v", claimed, err)
		}
		if err := db.EndRun(ctx, run.ID, claimed.Runs[0].Fence, runs.Ending{Status: lifecycle.Completed}, run.CreatedAt.Add(-2*time.Second)); err != nil {
			t.Fatal(err)
		}
		for _, id := range []ids.Run{cancelled.ID, run.ID} {
			r, err := db.Run(ctx, team, id)
			if err != nil {
				t.Fatal(err)
			}
			times := []time.Time{r.CreatedAt, r.StartedAt, r.FinishedAt}
			if r.StartedAt.IsZero() {
				times[1] = r.CreatedAt
			}
			if !slices.IsSortedFunc(times, time.Time.Compare) {
				t.Errorf("created, started and finished at %v", times)
			}
		}
		list, err := all(ctx, db, func(r *sql.Rows, at *int64) error { return r.Scan(at) }, `SELECT at FROM run_events WHERE run_id = $1 ORDER BY seq`, run.ID)
		if err != nil || len(list) < 3 || !slices.IsSorted(list) {
			t.Errorf("events at %v, %v", list, err)
		}
	})
}

// A worker that lacks an engine passes its pipelines by, however many there are, and
// finds what is behind them.
func TestAWorkerWithoutTheEngineLeavesAPipelineToAnother(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		made := func(needs ...admission.Need) ids.Run {
			t.Helper()
			r := newRun(team)
			r.Needs = needs
			if err := db.SubmitRun(ctx, r, 0, nil); err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		engine := admission.Need{Kind: admission.Engine, Ref: string(pipeline.Snakemake)}
		for range admission.LineLength {
			made(engine)
		}
		named := made(admission.Need{Kind: admission.Image, Ref: `{"kind":"engine","ref":"snakemake"}`})
		plain := made()
		lacks := claim("without w", 100)
		lacks.Lacks = []pipeline.Engine{pipeline.Snakemake}
		got, err := db.ClaimRuns(ctx, lacks, august, august.Add(time.Minute))
		if err != nil || len(got.Runs) != 2 || got.Runs[0].ID != named || got.Runs[1].ID != plain {
			t.Fatalf("without the engine it takes %d runs, %v", len(got.Runs), err)
		}
		has := claim("with w", 100)
		has.Lacks, has.Prepares = []pipeline.Engine{pipeline.Nextflow}, true // and an engine is nothing to fetch
		if got, err = db.ClaimRuns(ctx, has, august, august.Add(time.Minute)); err != nil || len(got.Runs) != admission.LineLength {
			t.Fatalf("with it, %d runs, %v", len(got.Runs), err)
		}
		waiting := made(engine)
		state, err := db.QueueState(ctx, team, []ids.Run{waiting}, august)
		if err != nil || state.Launches[waiting] != pipeline.Snakemake {
			t.Errorf("it waits as %+v, %v", state.Launches, err)
		}
	})
}

// However many runs wait, in the same lines or for another executor, a worker reads only
// the beginnings of its own lines, in which those that name no executor wait with the others.
func TestAClaimReadsTheBeginningsOfItsLines(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		queue := func(team ids.Team, executor string) ids.Run {
			r := newRun(team)
			r.Executor = executor
			if err := db.SubmitRun(ctx, r, 0, nil); err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		queue(team, "gpu")
		copyQueued(t, db, sizetest.Pick(4_000, 20_000))
		var line []ids.Run
		for i := range 2 * admission.LineLength {
			line = append(line, queue(team, []string{"cpu", "", "cpu"}[i%3]))
		}
		c := claim("w", 10)
		c.Executor = "cpu"
		mustRead(t, db, c, 1, 10*admission.LineLength, line)
		// Its line is behind pipelines that it cannot launch, of the same team.
		launched := newRun(team)
		launched.Executor, launched.Needs = "cpu", []admission.Need{{Kind: admission.Engine, Ref: string(pipeline.Nextflow)}}
		if err := db.SubmitRun(ctx, launched, 0, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := db.changed(ctx, `DELETE FROM runs WHERE executor = 'gpu'`); err != nil {
			t.Fatal(err)
		}
		copyQueued(t, db, 1000)
		if _, err := db.changed(ctx, `UPDATE runs SET created_at = created_at + $1 WHERE launches = ''`, time.Hour.Microseconds()); err != nil {
			t.Fatal(err)
		}
		c.Lacks = []pipeline.Engine{pipeline.Nextflow}
		mustRead(t, db, c, 1, 10*admission.LineLength, nil)
		// Many teams, one executor, and nothing of the past.
		const teams = 30
		if _, err := db.changed(ctx, `DELETE FROM runs`); err != nil {
			t.Fatal(err)
		}
		for range teams {
			other, _ := newTeam(t, db)
			queue(other, "local")
		}
		copyQueued(t, db, 50)
		c.Executor = "local"
		mustRead(t, db, c, teams, 2*teams*admission.LineLength, nil)
	})
}

// mustRead has a worker look at its lines, and counts what PostgreSQL reads for it. The
// first line is to begin as told.
func mustRead(t *testing.T, db *DB, c admission.Claim, want, most int, line []ids.Run) {
	t.Helper()
	ctx := t.Context()
	if _, err := db.changed(ctx, `ANALYZE`); err != nil {
		t.Fatal(err)
	}
	err := db.inTx(ctx, func(tx *DB) error {
		lines, err := tx.teamQueues(ctx, c, august)
		if err != nil {
			return err
		}
		if len(lines) != want || len(lines[0].Waiting) != admission.LineLength {
			return fmt.Errorf("%d lines: %+v", len(lines), lines)
		}
		for i, r := range lines[0].Waiting {
			if line != nil && r.ID != line[i] {
				t.Errorf("%s is at place %d, want %s", r.ID, i, line[i])
			}
		}
		if db.dialect.name != postgresDialect.name {
			return nil
		}
		var read int
		err = tx.q.QueryRowContext(ctx, `SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'runs'`).Scan(&read)
		if read > most {
			t.Errorf("%d runs are read for the beginnings of %d lines", read, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// copyQueued has many more runs wait for each that does, in the same line.
func copyQueued(t *testing.T, db *DB, n int) {
	t.Helper()
	const columns = `team_id, workflow_id, workflow_name, workflow_revision, definition, parameters, inputs, vcpu, ram_gb, gpu, price,
		starter_type, starter_id, starter_name, status, total_nodes, seq, claimed_at, executor, needs, launches`
	_, err := db.changed(t.Context(), `
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		INSERT INTO runs (id, number, created_at, `+columns+`) SELECT id || i, number * 1000000 + i, created_at + i, `+columns+` FROM n CROSS JOIN runs WHERE status = 'queued' `, n)
	if err != nil {
		t.Fatal(err)
	}
}
