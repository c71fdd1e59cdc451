package store

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/runs"
)

// A worker keeps its runs though everything else in its process waits for connections.
func TestLeasesAreRenewedWhileAllOtherConnectionsAreBusy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := databases.Postgres(t)
	const connections = 3
	db, err := Open(ctx, Options{URL: url, SecretKey: "a secret key for tests only", MaxConnections: connections})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	team, _ := newTeam(t, db)
	r := newRun(team)
	if err := db.SubmitRun(ctx, r, 0, nil); err != nil {
		t.Fatal(err)
	}
	claimed, err := db.ClaimRuns(ctx, claim("w", 10), august, august.Add(time.Minute))
	if err != nil || len(claimed.Runs) != 1 {
		t.Fatalf("%+v, %v", claimed, err)
	}
	for range connections - 1 {
		busy, err := db.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer busy.Rollback()
	}
	held := runs.HeldRun{Run: r.ID, Fence: claimed.Runs[0].Fence}
	if known, err := db.RenewLeases(ctx, []runs.HeldRun{held}, august.Add(time.Hour)); err != nil || len(known.Kept) != 1 {
		t.Errorf("%+v, %v", known, err)
	}
	var open int
	err = db.leasing.QueryRowContext(ctx, `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`).Scan(&open)
	if err != nil || open != connections {
		t.Errorf("%d connections, want %d: %v", open, connections, err)
	}
}

// While one run of a worker is written to, the others are neither renewed late nor held:
// their tasks go on to be written.
func TestARunThatIsBusyHoldsUpNoOtherLease(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db, err := Open(ctx, Options{URL: databases.Postgres(t), SecretKey: "a secret key for tests only"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	team, _ := newTeam(t, db)
	for range 3 {
		if err := db.SubmitRun(ctx, newRun(team), 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	claimed, err := db.ClaimRuns(ctx, claim("w", 10), august, august.Add(time.Minute))
	if err != nil || len(claimed.Runs) != 3 {
		t.Fatalf("%+v, %v", claimed, err)
	}
	var held []runs.HeldRun
	for _, r := range claimed.Runs {
		held = append(held, runs.HeldRun{Run: r.ID, Fence: r.Fence})
	}
	busy, err := db.pool.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Rollback()
	if _, err := busy.ExecContext(ctx, `UPDATE runs SET progress = 1 WHERE id = $1`, held[1].Run); err != nil {
		t.Fatal(err)
	}
	ended := runs.HeldRun{Run: "run_gone", Fence: 1}
	known, err := db.RenewLeases(ctx, append(held, ended), august.Add(time.Hour))
	if err == nil || len(known.Kept) != 2 || slices.Contains(known.Kept, held[1]) || !slices.Equal(known.Lost, []runs.HeldRun{ended}) {
		t.Errorf("while one is written to: %+v, %v", known, err)
	}
	for _, h := range []runs.HeldRun{held[0], held[2]} {
		if err := db.Advance(ctx, h.Run, h.Fence, runs.Step{Progress: 2}, august); err != nil {
			t.Error(err)
		}
	}
	if err := busy.Commit(); err != nil {
		t.Fatal(err)
	}
	if known, err := db.RenewLeases(ctx, held, august.Add(time.Hour)); err != nil || len(known.Kept) != 3 {
		t.Errorf("afterwards: %+v, %v", known, err)
	}
}
