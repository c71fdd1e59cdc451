package store

import (
	"context"
	"database/sql"
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
	if kept, err := db.RenewLeases(ctx, []runs.HeldRun{held}, august.Add(time.Hour)); err != nil || len(kept) != 1 {
		t.Errorf("%+v, %v", kept, err)
	}
	var open int
	err = db.leasing.QueryRowContext(ctx, `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`).Scan(&open)
	if err != nil || open != connections {
		t.Errorf("%d connections, want %d: %v", open, connections, err)
	}
}
