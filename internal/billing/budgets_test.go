package billing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/store/storetest"
)

func TestForecast(t *testing.T) {
	t.Parallel()
	tenth := time.Date(2026, 9, 11, 0, 0, 0, 0, time.UTC) // ten of thirty days have passed
	for name, tt := range map[string]struct {
		b    billing.Budget
		now  time.Time
		want credits.Amount
	}{
		"as before":                      {billing.Budget{Spent: 100}, tenth, 300},
		"nothing was spent":              {billing.Budget{Held: 5}, tenth, 5},
		"the first hour counts as a day": {billing.Budget{Spent: 10}, time.Date(2026, 9, 1, 1, 0, 0, 0, time.UTC), 300},
	} {
		if got := tt.b.Forecast(tt.now); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

func TestBudgetsAreChecked(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		fine := billing.Budget{Scope: billing.TeamBudget, Limit: credits.Credit}
		with := func(change func(*billing.Budget)) []billing.Budget {
			one := fine
			change(&one)
			return []billing.Budget{one}
		}
		for path, list := range map[string][]billing.Budget{
			"budgets[0].scope":   with(func(b *billing.Budget) { b.Scope = "run" }),
			"budgets[0].subject": with(func(b *billing.Budget) { b.Subject = "x" }),
			"budgets[0].limit":   with(func(b *billing.Budget) { b.Limit = 0 }),
			"budgets[0].month":   with(func(b *billing.Budget) { b.Month = "2026-13" }),
			"budgets[0].alertAt": with(func(b *billing.Budget) { b.AlertAt = []int{101} }),
			"budgets[1].subject": {fine, fine},
			"budgets":            make([]billing.Budget, billing.MaxBudgets+1),
		} {
			_, err := b.SetBudgets(t.Context(), b.owner, list)
			if e, ok := errors.AsType[*fault.Error](err); !ok || e.Kind != fault.KindInvalid || e.Details[0].Path != path {
				t.Errorf("%s: %v", path, err)
			}
		}
		stranger := storetest.Owner(t, b.db, "eve")
		of := billing.Budget{Scope: billing.UserBudget, Subject: string(stranger.User), Limit: credits.Credit}
		if _, err := b.SetBudgets(t.Context(), b.owner, []billing.Budget{of}); !fault.Is(err, fault.KindInvalid) {
			t.Errorf("somebody of another team: %v", err)
		}
		member := b.owner
		member.Role = access.Member
		if _, err := b.SetBudgets(t.Context(), member, nil); !fault.Is(err, fault.KindForbidden) {
			t.Errorf("a member: %v", err)
		}
	})
}

func TestAnEstimateWarnsOfBudgets(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ask := func(tags ...string) billing.Estimate {
			t.Helper()
			e, err := b.Estimate(t.Context(), b.owner, billing.Question{Workflow: "wf_1", Tags: tags})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		if err := b.db.Hold(t.Context(), b.owner.Team, "run_1", credits.Credit, b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		hour := billing.Entry{Team: b.owner.Team, Type: billing.RunEntry, Source: "run", SourceID: "run_1", Workflow: "wf_1", Quantity: 3600, Unit: "seconds", CreatedAt: b.clock.Now()}
		if err := b.db.SettleHold(t.Context(), "run_1", hour, 10*credits.Credit); err != nil { // 10.08 credits an hour
			t.Fatal(err)
		}
		_, err := b.SetBudgets(t.Context(), b.owner, []billing.Budget{
			{Scope: billing.TeamBudget, Limit: 15 * credits.Credit}, {Scope: billing.TagBudget, Subject: "pilot", Limit: 1, Hard: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		if e := ask(); !e.Allowed || len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], "5 left: it would be passed") {
			t.Errorf("%+v", e)
		}
		if e := ask("pilot"); e.Allowed || !strings.Contains(e.Reason, "the budget of the tag pilot") {
			t.Errorf("%+v", e)
		}
	})
}
