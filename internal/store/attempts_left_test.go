package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/attempts"
)

func TestAttemptsOfARunThatHasNotEndedStay(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		r := submit(t, db, team)
		a := attempts.Attempt{ID: "a", Run: r.ID, Scope: "here", Fence: "f", About: json.RawMessage(`{}`), SubmittedAt: time.Now()}
		if err := db.AddAttempt(t.Context(), a, attempts.Order{}); err != nil {
			t.Fatal(err)
		}
		if n, err := db.RemoveEndedAttempts(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 0 {
			t.Errorf("%d were removed, %v", n, err)
		}
	})
}
