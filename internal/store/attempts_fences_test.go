package store

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/runs"
)

// TestOrdersOfAFormerOwnerChangeNothing checks that whoever has lost a run can neither
// start, renew, stop, conclude nor remove an attempt of it, and that its new owner can.
func TestOrdersOfAFormerOwnerChangeNothing(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		run := started(t, db, team, `{}`)
		a := attempts.Attempt{ID: "a", Run: run.ID, Scope: "here", Fence: "f", RunFence: run.Fence, SubmittedAt: august}
		must(t, db.AddAttempt(ctx, a, attempts.Order{}))
		_, err := db.BeginAttempt(ctx, "a", "f", "s", august)
		must(t, err)
		fence, err := db.SeizeRun(ctx, run.ID, "w2", august, august.Add(time.Minute))
		must(t, err)

		late := attempts.Attempt{ID: "b", Run: run.ID, Scope: "here", Fence: "g", RunFence: run.Fence, SubmittedAt: august}
		if err := db.AddAttempt(ctx, late, attempts.Order{}); !errors.Is(err, runs.ErrFenced) {
			t.Errorf("an attempt of the former owner: %v", err)
		}
		former, owner := a.Ref(), attempts.Ref{ID: "a", Fence: "f", RunFence: fence}
		orders := func(ref attempts.Ref) {
			must(t, db.RenewAttempts(ctx, []attempts.Ref{ref}))
			must(t, db.StopAttempt(ctx, ref, time.Second))
			must(t, db.ConcludeAttempt(ctx, ref, json.RawMessage(`{}`)))
		}
		read := func() attempts.Attempt {
			list, err := db.AttemptsIn(ctx, "here")
			if err != nil || len(list) != 1 {
				t.Fatalf("%+v, %v", list, err)
			}
			return list[0]
		}
		orders(former)
		must(t, db.RemoveAttempt(ctx, former))
		if got := read(); got.Renewals != 0 || got.Stopping || got.Decided || got.RunFence != fence {
			t.Errorf("after orders of the former owner: %+v", got)
		}
		if answer, err := db.ReportAttempt(ctx, "a", "s", attempts.Report{}, august); err != nil || answer.RunFence != fence || answer.Stop {
			t.Errorf("the shim hears %+v, %v", answer, err)
		}
		orders(owner)
		if got := read(); got.Renewals != 1 || !got.Stopping || !got.Decided {
			t.Errorf("after orders of the owner: %+v", got)
		}
		must(t, db.RemoveAttempt(ctx, owner))
		if list, err := db.AttemptsIn(ctx, "here"); err != nil || len(list) != 0 {
			t.Errorf("after its removal: %+v, %v", list, err)
		}
	})
}
