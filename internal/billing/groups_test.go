package billing

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

var firstDay = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)

func on(day int, key string, cost credits.Amount) Cost {
	return Cost{Date: firstDay.AddDate(0, 0, day), Key: key, Name: "the " + key, Runs: 1, Cost: cost}
}

// The costliest comes first, each day has its place, and days outside of the
// time that was asked for do not count.
func TestCostsAreGrouped(t *testing.T) {
	t.Parallel()
	got := grouped([]Cost{on(0, "a", 1), on(2, "a", 2), on(1, "b", 9), on(0, "c", 3), on(2, "", 3), on(-1, "a", 100), on(3, "b", 100), on(400, "a", 100)}, ByTag, firstDay, 3)
	want := []Group{
		{By: ByTag, Key: "b", Name: "the b", Runs: 1, Cost: 9, Daily: []credits.Amount{0, 9, 0}},
		{By: ByTag, Key: "", Name: "the ", Runs: 1, Cost: 3, Daily: []credits.Amount{0, 0, 3}},
		{By: ByTag, Key: "a", Name: "the a", Runs: 2, Cost: 3, Daily: []credits.Amount{1, 0, 2}},
		{By: ByTag, Key: "c", Name: "the c", Runs: 1, Cost: 3, Daily: []credits.Amount{3, 0, 0}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := grouped(nil, ByUser, firstDay, 7); got == nil || len(got) > 0 {
		t.Errorf("of nothing there is %v", got)
	}
}

// Beyond fifty groups the rest is one, and nothing of it is lost.
func TestGroupsBeyondTheLargestAreOne(t *testing.T) {
	t.Parallel()
	for _, n := range []int{maxGroups, maxGroups + 1, 3 * maxGroups} {
		var costs []Cost
		var total credits.Amount
		for i := range n {
			costs = append(costs, on(i%5, fmt.Sprintf("k%03d", i), credits.Amount(i+1)))
			total += credits.Amount(i + 1)
		}
		got := grouped(costs, ByWorkflow, firstDay, 5)
		if len(got) != min(n, maxGroups+1) {
			t.Fatalf("%d become %d", n, len(got))
		}
		var sum, daily credits.Amount
		runs := 0
		for i, g := range got {
			sum, runs = sum+g.Cost, runs+g.Runs
			for _, c := range g.Daily {
				daily += c
			}
			if i > 0 && i < maxGroups && g.Cost > got[i-1].Cost {
				t.Errorf("%s costs more than what comes before it", g.Key)
			}
		}
		if sum != total || daily != total || runs != n {
			t.Errorf("%d cost %v, on all days %v, in %d runs; want %v", n, sum, daily, runs, total)
		}
		if last := got[len(got)-1]; n > maxGroups && (last.Name != "all others" || last.Key != "" || last.Runs != n-maxGroups || last.By != ByWorkflow) {
			t.Errorf("the rest is %+v", last)
		}
	}
}

// Whoever reads why a run was interrupted learns whose limit it was.
func TestWhyARunIsNotPaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		code lifecycle.ErrorCode
		says string
	}{
		"no credits":         {fault.Payment("too little"), lifecycle.CreditsExhausted, "the team has no credits left: buy a top-up, then retry the run"},
		"a budget":           {Budget{Scope: TeamBudget, Limit: credits.Credit, Spent: credits.Credit}.Exhausted(), lifecycle.BudgetExhausted, "the team's budget for this month is spent: 1 of 1 credits are used or held. An owner or admin can raise it in Billing"},
		"a link":             {fault.Payment("the guests of this link have used it up").WithCode(InviteLimit), lifecycle.CreditsExhausted, "the guests of this link have used it up"},
		"wrapped":            {fmt.Errorf("hold: %w", fault.Payment("spent").WithCode(BudgetExhausted)), lifecycle.BudgetExhausted, "spent"},
		"something else":     {errors.New("secret cause"), lifecycle.CreditsExhausted, "the team has no credits left: buy a top-up, then retry the run"},
		"nothing in any way": {nil, lifecycle.CreditsExhausted, "the team has no credits left: buy a top-up, then retry the run"},
	} {
		if code, says := Unpaid(tt.err); code != tt.code || says != tt.says {
			t.Errorf("%s: %s, %q", name, code, says)
		}
	}
}

// Free credits wait for an address; what is paid for does not.
func TestWhatWaitsForAnAddress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		b    Balance
		want bool
	}{
		{Balance{Plan: credits.Free, Unverified: true}, true}, {Balance{Plan: credits.Free}, false}, {Balance{Plan: credits.Pro, Unverified: true}, false},
	} {
		if got := tt.b.Waiting(); got != tt.want {
			t.Errorf("%+v: %v", tt.b, got)
		}
	}
	if got := (Balance{Credits: credits.Balance{Monthly: 3, TopUp: 4}, Held: 9}).Remaining(); got != 0 {
		t.Errorf("%v remain where more is held than there is", got)
	}
	if got := (Balance{Credits: credits.Balance{Monthly: 3, TopUp: 4}, Held: 6}).Remaining(); got != 1 {
		t.Errorf("%v remain of 7 when 6 are held", got)
	}
}
