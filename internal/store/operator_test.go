package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/operator"
)

// However many requests fail, the newest are kept and no more.
func TestTheNewestFailuresAreKept(t *testing.T) {
	eachLedger(t, func(t *testing.T, db *DB) {
		for i := range keptFailures + 20 {
			if err := db.RecordFailure(t.Context(), operator.Failure{At: time.UnixMicro(int64(i)), RequestID: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := db.Failures(t.Context(), 10*keptFailures)
		if err != nil || len(list) != keptFailures || list[0].RequestID != fmt.Sprint(keptFailures+19) {
			t.Errorf("%d are kept, the newest %+v, %v", len(list), list[0], err)
		}
	})
}

// Anybody may sign up with an address that is not theirs.
func TestAnOperatorHasConfirmedTheirAddress(t *testing.T) {
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		_, user := newTeam(t, db)
		var email string
		if err := db.q.QueryRowContext(ctx, `SELECT email FROM users WHERE id = $1`, user).Scan(&email); err != nil {
			t.Fatal(err)
		}
		is := func(want bool) {
			t.Helper()
			if got, err := db.IsOperator(ctx, user); err != nil || got != want {
				t.Errorf("%v, %v; want %v", got, err, want)
			}
		}
		if err := db.SetOperator(ctx, email, true, false, august); !fault.Is(err, fault.KindConflict) {
			t.Error(err)
		}
		is(false)
		set := func(yes, force bool) {
			t.Helper()
			if err := db.SetOperator(ctx, email, yes, force, august); err != nil {
				t.Error(err)
			}
			is(yes)
		}
		set(true, true)
		set(false, false)
		if _, err := db.changed(ctx, `UPDATE users SET email_verified_at = 1 WHERE id = $1`, user); err != nil {
			t.Fatal(err)
		}
		set(true, false)
		if err := db.SetOperator(ctx, "nobody@example.org", true, true, august); !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
	})
}
