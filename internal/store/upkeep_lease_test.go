package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/retention"
	"github.com/millrace/millrace/internal/upkeep"
)

// One process does the chores; one that has lost them writes nothing more.
func TestOneProcessDoesTheChores(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		fences := make([]int64, 6)
		_, errs := atOnce(6, func(i int) error {
			fence, _, err := db.ClaimUpkeep(ctx, fmt.Sprint("p", i), august, august.Add(time.Minute))
			fences[i] = fence
			return err
		})
		var first, claimed int64
		for i, fence := range fences {
			must(t, errs[i])
			if fence != 0 {
				first = fence
				claimed++
			}
		}
		if claimed != 1 {
			t.Fatalf("%v", fences)
		}
		record := func(fence int64, done int) error {
			return db.RecordChore(ctx, fence, upkeep.Record{Name: "chore", SucceededAt: august, Took: time.Second, Done: done, Skipped: 2})
		}
		must(t, record(first, 1))
		must(t, db.RenewUpkeep(ctx, first, august.Add(2*time.Minute)))
		if _, ok, err := db.ClaimUpkeep(ctx, "late", august.Add(2*time.Minute-time.Microsecond), august.Add(time.Hour)); err != nil || ok {
			t.Errorf("while it is renewed: %v, %v", ok, err)
		}
		next, ok, err := db.ClaimUpkeep(ctx, "next", august.Add(2*time.Minute), august.Add(time.Hour))
		if err != nil || !ok || next <= first {
			t.Fatalf("%d, %v, %v", next, ok, err)
		}
		for what, err := range map[string]error{
			"a chore":    record(first, 9),
			"renewing":   db.RenewUpkeep(ctx, first, august.Add(time.Hour)),
			"deleting":   second(db.Fenced(first).DeleteExpired(ctx, august)),
			"expiring":   third(db.Expire(ctx, first, retention.Logs, "team", august, august)),
			"forgetting": third(db.ForgetDeleted(ctx, first, august, august)),
		} {
			if !errors.Is(err, upkeep.ErrLost) {
				t.Errorf("%s by who has lost them: %v", what, err)
			}
		}
		must(t, db.ReleaseUpkeep(ctx, first)) // not theirs to give
		if _, ok, err := db.ClaimUpkeep(ctx, "third", august.Add(3*time.Minute), august.Add(time.Hour)); err != nil || ok {
			t.Errorf("%v, %v", ok, err)
		}
		must(t, db.ReleaseUpkeep(ctx, next))
		if _, ok, err := db.ClaimUpkeep(ctx, "third", august, august.Add(time.Hour)); err != nil || !ok {
			t.Errorf("%v, %v", ok, err)
		}
		list, err := db.Chores(ctx)
		want := upkeep.Record{Name: "chore", SucceededAt: august, Took: time.Second, Done: 1, Skipped: 2}
		if err != nil || len(list) != 1 || list[0] != want {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func third[A, B any](_ A, _ B, err error) error { return err }

// Nothing is deleted while a backup is made; one that never said that it ended
// stops counting.
func TestABackupIsMarked(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		making := func(now time.Time, want bool) {
			t.Helper()
			if got, err := db.BackingUp(ctx, now); err != nil || got != want {
				t.Errorf("at %v: %v, %v", now, got, err)
			}
		}
		making(august, false)
		must(t, db.MarkBackup(ctx, "a", august.Add(time.Minute)))
		must(t, db.MarkBackup(ctx, "b", august.Add(time.Minute)))
		must(t, db.MarkBackup(ctx, "a", august.Add(time.Hour))) // it goes on
		making(august.Add(30*time.Minute), true)
		making(august.Add(time.Hour), false)
		must(t, db.UnmarkBackup(ctx, "a"))
		making(august, true)
		making(august.Add(time.Minute), false)
		must(t, db.UnmarkBackup(ctx, "b"))
		must(t, db.UnmarkBackup(ctx, "b"))
		making(august, false)
	})
}

// A request counts by every rule or by none.
func TestSeveralLimitsAreTakenTogether(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		rule := func(bucket string, most int) limits.Rule {
			return limits.Rule{Bucket: bucket, Window: limits.Window{Most: most, Per: time.Minute}}
		}
		left := func(bucket string) int {
			t.Helper()
			n := 0
			must(t, db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM rate_hits WHERE bucket = $1`, bucket).Scan(&n))
			return n
		}
		// In either order, at once: nobody waits in a circle, and the smaller limit holds.
		allowed := make([]bool, 12)
		_, errs := atOnce(len(allowed), func(i int) error {
			rules := []limits.Rule{rule("a", 100), rule("b", 5)}
			if i%2 == 0 {
				rules[0], rules[1] = rules[1], rules[0]
			}
			got, err := db.TakeHits(ctx, rules, august.Add(time.Duration(i)))
			allowed[i] = err == nil && got[0].Allowed && got[1].Allowed
			return err
		})
		var n int
		for i, err := range errs {
			must(t, err)
			if allowed[i] {
				n++
			}
		}
		if n != 5 || left("a") != 5 || left("b") != 5 {
			t.Errorf("%d were let through, %d and %d are counted", n, left("a"), left("b"))
		}
		got, err := db.TakeHits(ctx, []limits.Rule{rule("b", 5), rule("c", 1)}, august.Add(time.Second))
		if err != nil || got[0].Allowed || !got[1].Allowed || left("c") != 0 {
			t.Errorf("%+v, %v; %d are counted by the other", got, err, left("c"))
		}
		must(t, db.ReturnHit(ctx, "b", august.Add(time.Second))) // nothing was taken then
		if left("b") != 5 {
			t.Error("what was never counted is given back")
		}
		if none, err := db.TakeHits(ctx, nil, august); err != nil || len(none) != 0 {
			t.Errorf("%+v, %v", none, err)
		}
		at := august.Add(2 * time.Minute)
		if s, err := db.TakeHit(ctx, "one", limits.Window{Most: 1, Per: time.Minute}, at); err != nil || !s.Allowed || s.Remaining != 0 {
			t.Errorf("%+v, %v", s, err)
		}
		must(t, db.ReturnHit(ctx, "one", at))
		if s, err := db.TakeHit(ctx, "one", limits.Window{Most: 1, Per: time.Minute}, at); err != nil || !s.Allowed {
			t.Errorf("%+v, %v", s, err)
		}
		if s, err := db.TakeHit(ctx, "one", limits.Window{Most: 1, Per: time.Minute}, at.Add(time.Minute-time.Microsecond)); err != nil || s.Allowed || s.Reset != time.Microsecond {
			t.Errorf("%+v, %v", s, err)
		}
		if s, err := db.TakeHit(ctx, "one", limits.Window{Most: 1, Per: time.Minute}, at.Add(time.Minute)); err != nil || !s.Allowed {
			t.Errorf("when the window has passed: %+v, %v", s, err)
		}
	})
}
