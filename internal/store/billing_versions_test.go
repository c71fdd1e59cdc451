package store

import (
	"database/sql"
	"testing"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/waittest"
)

// In a rolling upgrade, programs of several versions book on one balance. Earlier ones
// read it under an advisory lock, whose name has changed once, and write what they computed;
// one that is to come may take no such lock and add to what is there. No booking is lost.
func TestVersionsBookOnOneBalance(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lock     string
		relative bool
	}{
		"of the first releases":  {lock: "purse "},
		"of the release before":  {lock: "teamBalance "},
		"of a release to follow": {relative: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ctx := openLedger(t, databases.Postgres(t)), t.Context()
			team, _ := newTeam(t, db)
			other, err := db.pool.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Rollback()
			exec := func(query string, args ...any) {
				t.Helper()
				if _, err := other.ExecContext(ctx, query, args...); err != nil {
					t.Fatal(err)
				}
			}
			if tt.lock != "" {
				exec(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, tt.lock+string(team))
			}
			var topUp int64
			if err := other.QueryRowContext(ctx, `SELECT top_up FROM balances WHERE team_id = $1`, team).Scan(&topUp); err != nil {
				t.Fatal(err)
			}
			exec(`INSERT INTO ledger (id, team_id, type, source, source_id, monthly, top_up, run_id, workflow_id, actor_type, actor_id, actor_name, unit, description, created_at)
				VALUES ($1, $2, 'grant', 'other', 'a', 0, 5, '', '', '', '', '', '', '', 0)`, ids.NewEntry(), team)
			if tt.relative {
				exec(`UPDATE balances SET top_up = top_up + 5 WHERE team_id = $1`, team)
			}
			booked := make(chan error, 1)
			go func() {
				booked <- db.Grant(ctx, billing.Entry{Team: team, Type: billing.GrantEntry, Source: "ours", SourceID: "b", Credits: 7, CreatedAt: august})
			}()
			if !waittest.Until(func() bool { return len(booked) > 0 || waitsForLock(t, db) }) {
				t.Fatal("it neither books nor waits")
			}
			if !tt.relative {
				exec(`UPDATE balances SET top_up = $1 WHERE team_id = $2`, topUp+5, team)
			}
			if err := other.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-booked; err != nil {
				t.Fatal(err)
			}
			check(t, db, team)
		})
	}
}

// waitsForLock reports whether somebody waits for a lock in the database.
func waitsForLock(t *testing.T, db *DB) (waits bool) {
	t.Helper()
	err := db.pool.QueryRowContext(t.Context(), `
		SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
	if err != nil && err != sql.ErrNoRows {
		t.Error(err)
	}
	return waits
}
