package billing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Whoever wants to know at so many percent is told at so many percent, neither
// later nor earlier, however large the budget is.
func TestPercentsAreExact(t *testing.T) {
	t.Parallel()
	for _, limit := range []credits.Amount{100, 100 * credits.Credit, 7 * credits.Credit * 100, 1_000_000_000 * credits.Credit} {
		for percent := 1; percent <= 100; percent++ {
			b := billing.Budget{Limit: limit, Spent: limit / 100 * credits.Amount(percent-1), Held: limit / 100, AlertAt: []int{percent}}
			if b.Percent() != percent || b.Crossed(0) != percent {
				t.Errorf("%v of %v is %d %%, crossed %d", b.Spent+b.Held, limit, b.Percent(), b.Crossed(0))
			}
			if b.Held--; b.Percent() != percent-1 || b.Crossed(0) != 0 {
				t.Errorf("a bit less than %d %% of %v is %d %%, crossed %d", percent, limit, b.Percent(), b.Crossed(0))
			}
		}
	}
	if b := (billing.Budget{Limit: 10, Spent: 25, AlertAt: []int{50, 100, 80}}); b.Percent() != 250 || b.Crossed(0) != 100 || b.Left() != 0 {
		t.Errorf("%d %%, crossed %d, %v left", b.Percent(), b.Crossed(0), b.Left())
	}
	if (billing.Budget{}).Percent() != 0 {
		t.Error("nothing of nothing")
	}
}

// A hard budget in which the next run does not fit is spent as a whole.
func TestAHardBudgetIsSpentWhenNothingFits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hard bool
		next credits.Amount
		want int
	}{{true, 10, 80}, {true, 11, 100}, {false, 11, 80}, {true, 0, 80}} {
		b := billing.Budget{Limit: 100, Spent: 90, AlertAt: []int{50, 80, 100}, Hard: tt.hard}
		if got := b.Crossed(tt.next); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
	if b := (billing.Budget{Limit: 100, Spent: 95, AlertAt: []int{80}, Hard: true}); b.Crossed(50) != 80 {
		t.Error("who does not want to know at 100 % is not told")
	}
}

// One for this month takes the place of one for every month, and only of the same
// subject.
func TestWhichBudgetsAreInForce(t *testing.T) {
	t.Parallel()
	list := []billing.Budget{
		{Scope: billing.TeamBudget, Limit: 1},
		{Scope: billing.TeamBudget, Month: "2026-11", Limit: 2},
		{Scope: billing.TeamBudget, Month: "2026-12", Limit: 3},
		{Scope: billing.UserBudget, Subject: "user_a", Limit: 4},
		{Scope: billing.TagBudget, Subject: "user_a", Month: "2026-11", Limit: 5},
		{Scope: billing.TagBudget, Subject: "x", Month: "2025-11", Limit: 6},
	}
	for month, want := range map[string]string{"2026-11": "2 4 5", "2026-12": "3 4", "2027-01": "1 4", "2025-11": "1 4 6"} {
		var got []string
		for _, b := range billing.InForce(list, month) {
			got = append(got, fmt.Sprint(int64(b.Limit)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", month, got, want)
		}
	}
	if len(list) != 6 || list[1].Limit != 2 {
		t.Error("the list was changed")
	}
	for _, tt := range []struct {
		b    billing.Budget
		user ids.User
		tags []string
		want bool
	}{
		{list[0], "user_b", nil, true},
		{list[3], "user_a", nil, true},
		{list[3], "user_b", []string{"user_a"}, false},
		{list[4], "user_a", nil, false},
		{list[4], "user_b", []string{"y", "user_a"}, true},
	} {
		if got := tt.b.Bounds(tt.user, tt.tags); got != tt.want {
			t.Errorf("%+v bounds %s with %v: %v", tt.b, tt.user, tt.tags, got)
		}
	}
}

func TestABudgetIsNamedInASentence(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]billing.Budget{
		"the team's budget for this month":          {Scope: billing.TeamBudget},
		"the team's budget for 2026-11":             {Scope: billing.TeamBudget, Month: "2026-11"},
		"the budget of Ada for this month":          {Scope: billing.UserBudget, Subject: "user_a", Name: "Ada"},
		"the budget of the tag wheat for 2026-12":   {Scope: billing.TagBudget, Subject: "wheat", Month: "2026-12"},
		"the budget of the tag wheat/1 for 2026-12": {Scope: billing.TagBudget, Subject: "wheat/1", Month: "2026-12"},
	} {
		if got := b.Of(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	b := billing.Budget{Scope: billing.UserBudget, Name: "https://evil.example/pay now", Limit: 10 * credits.Credit, Spent: 8 * credits.Credit, Hard: true}
	m := billing.AlertMail(b, "team_a", "Quokka lab", 80)
	if m.Team != "team_a" || m.Subject != "A budget has reached 80 %" || !strings.HasPrefix(m.Text, "The budget of ") || !strings.Contains(m.Text, "8 of 10 credits") || !strings.Contains(m.Text, "are interrupted") ||
		!strings.Contains(m.Text, "“Quokka lab”") || m.Path != "/billing?team=team_a" {
		t.Errorf("%+v", m)
	}
	if strings.Contains(m.Text, "https://evil.example/pay") {
		t.Errorf("a name is a link in a mail: %s", m.Text)
	}
	b.Hard = false
	if m := billing.AlertMail(b, "team_a", "Quokka lab", 80); !strings.Contains(m.Text, "Runs continue") {
		t.Error(m.Text)
	}
}
