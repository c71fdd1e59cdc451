package store

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// swept is a sweep of some runs.
func swept(team ids.Team, n int) (runs.Sweep, []runs.Run) {
	s := runs.Sweep{ID: ids.NewSweep(), Team: team, Workflow: "wf_1", WorkflowName: "align", Name: "sizes", Note: "n", Varied: []string{"size", "seed"}, Starter: runs.Starter{Type: "user", ID: "user_1", Name: "Ada"}, CreatedAt: august}
	list := make([]runs.Run, n)
	for i := range list {
		list[i] = newRun(team)
		list[i].Sweep, list[i].Parameters = s.ID, fmt.Appendf(nil, `{"size":%d}`, i)
	}
	return s, list
}

func TestASweepIsAcceptedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		other, _ := newTeam(t, db)
		dear, list := swept(team, 3) // of 500 credits that there are
		refused(t, "the third cannot be paid", db.SubmitSweep(ctx, dear, list, 200*credits.Credit, nil), fault.KindPayment, "insufficient_credits")
		if _, err := db.Sweep(ctx, team, dear.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("it is there: %v", err)
		}
		if b, err := db.Balance(ctx, team, august); err != nil || b.Held != 0 {
			t.Errorf("%s are held, %v", b.Held, err)
		}
		once := &access.IdempotencyRecord{IdempotencyKey: access.IdempotencyKey{Scope: "s", Key: "k", Fingerprint: "f"}, Status: 202, Answer: []byte("{}")}
		s, list := swept(team, 3)
		must(t, db.SubmitSweep(ctx, s, list, 10*credits.Credit, once))
		again, more := swept(team, 1)
		refused(t, "the same request again", db.SubmitSweep(ctx, again, more, 0, once), fault.KindConflict, "idempotency_in_progress")
		got, err := db.Sweep(ctx, team, s.ID)
		if err != nil || got.Runs != 3 || !slices.Equal(got.Varied, s.Varied) || got.Name != s.Name || got.Starter != s.Starter {
			t.Errorf("%+v, %v", got, err)
		}
		members, err := db.RunsOfSweep(ctx, team, s.ID, 2)
		if err != nil || len(members) != 2 || members[0].ID != list[0].ID || members[1].Number != 2 || string(members[1].Parameters) != `{"size":1}` {
			t.Errorf("%+v, %v", members, err)
		}
		later, one := swept(team, 1)
		must(t, db.SubmitSweep(ctx, later, one, 0, nil))
		submit(t, db, team) // of no sweep
		page, err := db.Sweeps(ctx, team, "", 1)
		if err != nil || len(page) != 1 || page[0].ID != later.ID {
			t.Errorf("%+v, %v", page, err)
		}
		if page, err = db.Sweeps(ctx, team, later.ID, 5); err != nil || len(page) != 1 || page[0].ID != s.ID {
			t.Errorf("%+v, %v", page, err)
		}
		if list, err := db.RunsOfSweep(ctx, team, "", 10); err != nil || len(list) != 0 {
			t.Errorf("%d runs are of no sweep, %v", len(list), err)
		}
		if _, err := db.Sweep(ctx, other, s.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team: %v", err)
		}
		if list, err := db.RunsOfSweep(ctx, other, s.ID, 10); err != nil || len(list) != 0 {
			t.Errorf("another team sees %d runs, %v", len(list), err)
		}
		must(t, db.SuspendTeam(ctx, team, true, august))
		last, list := swept(team, 1)
		refused(t, "of a suspended team", db.SubmitSweep(ctx, last, list, 0, nil), fault.KindForbidden, "team_suspended")
	})
}

// What was made by a request is named by its entry in the log.
func TestTheLogNamesWhatWasMade(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, owner := newTeam(t, db)
		did := func(make func(ctx context.Context) (string, error)) {
			t.Helper()
			entry := &audit.Pending{Entry: audit.Entry{Chain: string(team), Action: "something.made", At: august, Actor: audit.Actor{Type: "user", ID: string(owner), Name: "Ada"}}}
			made, err := make(audit.With(t.Context(), entry))
			must(t, err)
			list, err := db.AuditEntries(t.Context(), string(team), audit.Filter{}, 1)
			if err != nil || len(list) != 1 || made == "" || list[0].Target != made {
				t.Errorf("%+v, %v; want %q", list, err, made)
			}
		}
		did(func(ctx context.Context) (string, error) {
			s, list := swept(team, 2)
			return string(s.ID), db.SubmitSweep(ctx, s, list, 0, nil)
		})
		did(func(ctx context.Context) (string, error) {
			r := newRun(team)
			return string(r.ID), db.SubmitRun(ctx, r, 0, nil)
		})
		did(func(ctx context.Context) (string, error) {
			a, err := db.Ask(ctx, askFor(team, doi.DOI("10.1000/x")), ai.DefaultLimits(), august)
			return string(a.ID), err
		})
	})
}
