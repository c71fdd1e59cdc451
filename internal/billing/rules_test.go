package billing_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

func TestWhoSeesBudgetsAndCosts(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for role, tt := range map[access.Role]struct{ see, set fault.Kind }{
			access.Owner: {"", ""}, access.Admin: {"", ""}, access.Member: {"", fault.KindForbidden}, access.Viewer: {"", fault.KindForbidden},
			access.GuestEditor: {fault.KindForbidden, fault.KindForbidden},
		} {
			as := b.owner
			as.Role = role
			_, err := b.Budgets(t.Context(), as)
			storetest.Refused(t, string(role)+" sees budgets", err, tt.see)
			_, err = b.Groups(t.Context(), as, billing.ByTag, b.clock.Now(), 7)
			storetest.Refused(t, string(role)+" sees costs", err, tt.see)
			_, err = b.SetBudgets(t.Context(), as, nil)
			storetest.Refused(t, string(role)+" sets budgets", err, tt.set)
		}
	})
}

// As much as is allowed is taken, and one more is refused where it stands.
func TestBudgetsAtAndBeyondTheirLimits(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const most = 1_000_000_000 * credits.Credit
		tag := func(subject string) billing.Budget {
			return billing.Budget{Scope: billing.TagBudget, Subject: subject, Limit: credits.Credit}
		}
		var hundred []billing.Budget
		for i := range billing.MaxBudgets {
			hundred = append(hundred, tag(fmt.Sprintf("t%03d", i)))
		}
		ten := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 100}
		for name, tt := range map[string]struct {
			list []billing.Budget
			path string // empty: it is taken
		}{
			"the most there may be":    {hundred, ""},
			"one more":                 {append(hundred[:len(hundred):len(hundred)], tag("x")), "budgets"},
			"none":                     {nil, ""},
			"the largest":              {[]billing.Budget{{Scope: billing.TeamBudget, Limit: most}}, ""},
			"larger":                   {[]billing.Budget{{Scope: billing.TeamBudget, Limit: most + 1}}, "budgets[0].limit"},
			"the smallest":             {[]billing.Budget{{Scope: billing.TeamBudget, Limit: 1}}, ""},
			"less than nothing":        {[]billing.Budget{{Scope: billing.TeamBudget, Limit: -1}}, "budgets[0].limit"},
			"ten alerts":               {[]billing.Budget{{Scope: billing.TeamBudget, Limit: 1, AlertAt: ten}}, ""},
			"eleven alerts":            {[]billing.Budget{{Scope: billing.TeamBudget, Limit: 1, AlertAt: append(ten[:10:10], 50)}}, "budgets[0].alertAt"},
			"an alert at nothing":      {[]billing.Budget{{Scope: billing.TeamBudget, Limit: 1, AlertAt: []int{0}}}, "budgets[0].alertAt"},
			"the longest tag":          {[]billing.Budget{tag(strings.Repeat("x", 64))}, ""},
			"a longer one":             {[]billing.Budget{tag(strings.Repeat("x", 65))}, "budgets[0].subject"},
			"no tag":                   {[]billing.Budget{tag("")}, "budgets[0].subject"},
			"a tag with a quote":       {[]billing.Budget{tag(`a"b`)}, "budgets[0].subject"},
			"a tag with NUL":           {[]billing.Budget{tag("a\x00b")}, "budgets[0].subject"},
			"nobody":                   {[]billing.Budget{{Scope: billing.UserBudget, Limit: 1}}, "budgets[0].subject"},
			"a person who is a team":   {[]billing.Budget{{Scope: billing.UserBudget, Subject: string(b.owner.Team), Limit: 1}}, "budgets[0].subject"},
			"a person nobody knows":    {[]billing.Budget{{Scope: billing.UserBudget, Subject: "user_nobody", Limit: 1}}, "budgets[0].subject"},
			"a month without a zero":   {[]billing.Budget{{Scope: billing.TeamBudget, Month: "2026-1", Limit: 1}}, "budgets[0].month"},
			"a day":                    {[]billing.Budget{{Scope: billing.TeamBudget, Month: "2026-11-01", Limit: 1}}, "budgets[0].month"},
			"every month and this one": {[]billing.Budget{{Scope: billing.TeamBudget, Limit: 1}, {Scope: billing.TeamBudget, Month: "2026-11", Limit: 1}}, ""},
			"this month twice":         {[]billing.Budget{{Scope: billing.TeamBudget, Month: "2026-11", Limit: 1}, {Scope: billing.TeamBudget, Month: "2026-11", Limit: 2}}, "budgets[1].subject"},
		} {
			before, err := b.Budgets(t.Context(), b.owner)
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.SetBudgets(t.Context(), b.owner, tt.list)
			e, refused := errors.AsType[*fault.Error](err)
			switch {
			case tt.path == "" && (err != nil || len(got) != len(tt.list)):
				t.Errorf("%s: %d budgets, %v", name, len(got), err)
			case tt.path != "" && (!refused || e.Kind != fault.KindInvalid || e.Details[0].Path != tt.path):
				t.Errorf("%s: %v, want %s", name, err, tt.path)
			}
			after, err := b.Budgets(t.Context(), b.owner)
			if err != nil || tt.path != "" && len(after) != len(before) {
				t.Errorf("%s: %d budgets became %d, %v", name, len(before), len(after), err)
			}
		}
	})
}

// The budget of somebody who has left may stay, and one that is new may not.
func TestTheBudgetOfSomebodyWhoLeft(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ben := storetest.Join(t, b.db, b.owner, "ben", access.Member)
		eve := storetest.Join(t, b.db, b.owner, "eve", access.Member)
		of := func(who access.Caller, limit credits.Amount) billing.Budget {
			return billing.Budget{Scope: billing.UserBudget, Subject: string(who.User), Limit: limit}
		}
		if got, err := b.SetBudgets(t.Context(), b.owner, []billing.Budget{of(ben, 5)}); err != nil || got[0].Name != "ben" {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, who := range []access.Caller{ben, eve} {
			if err := b.db.RemoveMember(t.Context(), b.owner.Team, who.User, func(access.Role) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := b.SetBudgets(t.Context(), b.owner, []billing.Budget{of(ben, 7)}); err != nil || len(got) != 1 || got[0].Limit != 7 {
			t.Errorf("what was there: %+v, %v", got, err)
		}
		_, err := b.SetBudgets(t.Context(), b.owner, []billing.Budget{of(ben, 7), of(eve, 7)})
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Details[0].Path != "budgets[1].subject" {
			t.Errorf("one that is new: %v", err)
		}
		if _, err := b.SetBudgets(t.Context(), b.owner, nil); err != nil {
			t.Fatal(err)
		}
		_, err = b.SetBudgets(t.Context(), b.owner, []billing.Budget{of(ben, 7)})
		storetest.Refused(t, "once it is gone", err, fault.KindInvalid)
	})
}

// A hard budget in which just the first minute fits lets a run start, and one
// that has less does not.
func TestAHardBudgetAtItsBorder(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		size, _ := credits.Resolve(nil, "")
		minute := credits.HoldSeconds * credits.DefaultCatalog().Rates.PerSecond(size)
		for _, tt := range []struct {
			limit   credits.Amount
			hard    bool
			allowed bool
		}{{minute, true, true}, {minute - 1, true, false}, {minute - 1, false, true}} {
			if _, err := b.SetBudgets(t.Context(), b.owner, []billing.Budget{{Scope: billing.UserBudget, Subject: string(b.owner.User), Limit: tt.limit, Hard: tt.hard}}); err != nil {
				t.Fatal(err)
			}
			e, err := b.Estimate(t.Context(), b.owner, billing.Question{})
			if err != nil || e.Allowed != tt.allowed || (e.Reason == "") != tt.allowed {
				t.Errorf("%+v: %v, %q, %v", tt, e.Allowed, e.Reason, err)
			}
			other := b.owner
			other.User = "user_other"
			if e, err := b.Estimate(t.Context(), other, billing.Question{}); err != nil || !e.Allowed {
				t.Errorf("somebody else: %+v, %v", e, err)
			}
		}
	})
}

func TestWhoHasNoAddressYetIsToldToConfirmIt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := builtin.NewAccount{
			Account: builtin.Account{User: identity.User{ID: ids.NewUser(), Email: "zoe@example.org", Name: "zoe"}},
			Team:    identity.Team{ID: ids.NewTeam(), Name: "zoe's team", Plan: "free"}, WaitVerified: true, CreatedAt: b.clock.Now(),
		}
		if err := b.db.SignUp(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		zoe := access.Caller{User: a.ID, Name: "zoe", Team: a.Team.ID, Role: access.Owner}
		balance, _, err := b.Balance(t.Context(), zoe)
		if err != nil || !balance.Waiting() || balance.Remaining() != 0 {
			t.Fatalf("%+v, %v", balance, err)
		}
		if e, err := b.Estimate(t.Context(), zoe, billing.Question{}); err != nil || e.Allowed || e.Reason != billing.VerifyFirst {
			t.Errorf("%+v, %v", e, err)
		}
		b.owner = zoe
		if p, err := b.PayCheckout(t.Context(), b.buy()); err != nil || p.State != billing.OrderPaid {
			t.Fatal(p.State, err)
		}
		if e, err := b.Estimate(t.Context(), zoe, billing.Question{}); err != nil || !e.Allowed || e.Reason != "" {
			t.Errorf("what is paid for waits for nothing: %+v, %v", e, err)
		}
	})
}

// Paid and cancelled at once, a checkout ends as one of the two, and the credits
// are those of that end.
func TestACheckoutThatIsPaidAndCancelledAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		pack := credits.DefaultCatalog().Packages[0]
		for range 4 {
			before, secret := b.left(), b.buy()
			start := make(chan struct{})
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					<-start
					act := b.PayCheckout
					if i%2 == 0 {
						act = b.CancelCheckout
					}
					if _, err := act(t.Context(), secret); err != nil {
						t.Error(err)
					}
				})
			}
			close(start)
			wg.Wait()
			p, err := b.Checkout(t.Context(), secret)
			want := map[billing.OrderState]credits.Amount{billing.OrderPaid: pack.Credits, billing.OrderCancelled: 0}
			if due, ended := want[p.State]; err != nil || !ended || b.left()-before != due {
				t.Errorf("%s with %v credits, %v", p.State, b.left()-before, err)
			}
		}
	})
}

// A list that is read page by page has everything once, and only what is the
// team's own.
func TestListsAreReadPageByPage(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for range 3 {
			if _, err := b.PayCheckout(t.Context(), b.buy()); err != nil {
				t.Fatal(err)
			}
		}
		eve := storetest.Owner(t, b.db, "eve")
		if list, more, err := b.Invoices(t.Context(), eve, "", 10, "http://a"); err != nil || more || len(list) > 0 {
			t.Errorf("another team has %v, %v", list, err)
		}
		whole, more, err := b.Invoices(t.Context(), b.owner, "", 3, "http://a")
		if err != nil || more || len(whole) != 3 {
			t.Fatalf("%d invoices, more %v, %v", len(whole), more, err)
		}
		before := ""
		for i := range 3 {
			list, more, err := b.Invoices(t.Context(), b.owner, before, 1, "http://a")
			if err != nil || len(list) != 1 || more != (i < 2) || list[0].ID != whole[i].ID {
				t.Fatalf("page %d is %+v, more %v, %v", i, list, more, err)
			}
			before = list[0].ID
		}
		if list, more, err := b.Invoices(t.Context(), eve, whole[0].ID, 10, "http://a"); err != nil || more || len(list) > 0 {
			t.Errorf("another team after one of ours has %v, %v", list, err)
		}
		entries, _, err := b.Usage(t.Context(), b.owner, "", 100)
		if err != nil || len(entries) < 4 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		before = ""
		for i := range entries {
			list, more, err := b.Usage(t.Context(), b.owner, before, 1)
			if err != nil || len(list) != 1 || more != (i < len(entries)-1) || list[0].ID != entries[i].ID {
				t.Fatalf("entry %d is %+v, more %v, %v", i, list, more, err)
			}
			before = list[0].ID
		}
		if list, more, err := b.Usage(t.Context(), b.owner, before, 1); err != nil || more || len(list) > 0 {
			t.Errorf("after the last: %v, %v", list, err)
		}
	})
}

// The answer that is to be repeated is noted with the checkout, or neither is.
func TestACheckoutIsOpenedOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		boom := errors.New("boom")
		_, err := b.StartTopUp(t.Context(), b.owner, billing.TopUp{Base: "http://a", Once: func(string) (*access.IdempotencyRecord, error) { return nil, boom }})
		if !errors.Is(err, boom) {
			t.Errorf("got %v", err)
		}
		var noted string
		url, err := b.StartTopUp(t.Context(), b.owner, billing.TopUp{Base: "http://a", Once: func(url string) (*access.IdempotencyRecord, error) { noted = url; return nil, nil }})
		if err != nil || noted != url || !strings.HasPrefix(url, "http://a/checkout/") {
			t.Errorf("%s, noted %s, %v", url, noted, err)
		}
		for _, index := range []int{-1, len(credits.DefaultCatalog().Packages)} {
			_, err := b.StartTopUp(t.Context(), b.owner, billing.TopUp{Package: index, Base: "http://a"})
			if e, ok := errors.AsType[*fault.Error](err); !ok || e.Details[0].Path != "packageIndex" {
				t.Errorf("package %d: %v", index, err)
			}
		}
		for i, pack := range credits.DefaultCatalog().Packages {
			url, err := b.StartTopUp(t.Context(), b.owner, billing.TopUp{Package: i, Base: "http://a"})
			if err != nil {
				t.Fatal(err)
			}
			p, err := b.Checkout(t.Context(), strings.TrimPrefix(url, "http://a/checkout/"))
			if err != nil || p.Package != pack || !p.ExpiresAt.After(b.clock.Now().Add(22*time.Hour)) {
				t.Errorf("%+v, %v", p, err)
			}
		}
	})
}

// What was used stands on the day on which it was, in the dashboard and by group,
// and a day later it is a day further back.
func TestUseStandsOnItsDay(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		book := func(run string, cost credits.Amount) {
			t.Helper()
			if err := b.db.Hold(t.Context(), b.owner.Team, run, cost, b.clock.Now()); err != nil {
				t.Fatal(err)
			}
			e := billing.Entry{Team: b.owner.Team, Type: billing.RunEntry, Source: "run", SourceID: run, Run: ids.Run(run), Workflow: "wf_1", Quantity: 60, Unit: "seconds", CreatedAt: b.clock.Now(), Actor: billing.Actor{Type: "user", ID: string(b.owner.User), Name: "ada"}}
			if err := b.db.SettleHold(t.Context(), run, e, cost); err != nil {
				t.Fatal(err)
			}
		}
		book("run_1", 3*credits.Credit)
		b.clock.Pass(11*time.Hour + 59*time.Minute) // it began at noon
		book("run_2", 4*credits.Credit)
		b.clock.Pass(time.Minute)
		book("run_3", 5*credits.Credit)
		for later, want := range []map[int]credits.Amount{{5: 7 * credits.Credit, 6: 5 * credits.Credit}, {4: 7 * credits.Credit, 5: 5 * credits.Credit}} {
			series, err := b.Dashboard(t.Context(), b.owner, 7)
			if err != nil {
				t.Fatal(err)
			}
			for i, day := range series {
				if day.Compute != want[i] || day.Storage != 0 || (day.Runs > 0) != (want[i] > 0) {
					t.Errorf("%d days later, day %d is %+v, want %v", later, i, day, want[i])
				}
			}
			for _, by := range []billing.Grouping{billing.ByUser, billing.ByWorkflow, billing.ByTag} {
				groups, err := b.Groups(t.Context(), b.owner, by, series[0].Date, 7)
				if err != nil || len(groups) != 1 || groups[0].Runs != 3 || groups[0].Cost != 12*credits.Credit {
					t.Fatalf("by %s: %+v, %v", by, groups, err)
				}
				for i, cost := range groups[0].Daily {
					if cost != want[i] {
						t.Errorf("by %s, day %d costs %v, want %v", by, i, cost, want[i])
					}
				}
			}
			b.clock.Pass(24 * time.Hour)
		}
		eve := storetest.Owner(t, b.db, "eve")
		if groups, err := b.Groups(t.Context(), eve, billing.ByUser, b.clock.Now().AddDate(0, 0, -7), 7); err != nil || len(groups) > 0 {
			t.Errorf("another team sees %+v, %v", groups, err)
		}
	})
}
