package store

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// In whatever order and however often a provider tells of two subscriptions, the
// team comes to the largest plan that is paid for, and gets its credits once.
func TestSubscriptionsAreToldInAnyOrder(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		event := func(team ids.Team, id string, plan credits.Plan, seconds int, change func(*billing.PaymentEvent)) billing.PaymentEvent {
			e := billing.PaymentEvent{Kind: billing.PlanChanged, Team: team, Subscription: id, Plan: plan, State: "active", Created: august.Add(time.Duration(seconds) * time.Second)}
			if change != nil {
				change(&e)
			}
			return e
		}
		for i, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}, {0, 0, 3, 3, 1, 2, 2, 1}} {
			team, _ := newTeam(t, db)
			events := []billing.PaymentEvent{
				event(team, "a", credits.Pro, 0, func(e *billing.PaymentEvent) { e.Began = true }),
				event(team, "a", credits.Team, 10, nil),
				event(team, "b", credits.Pro, 5, func(e *billing.PaymentEvent) { e.Began = true }),
				event(team, "a", credits.Free, 20, func(e *billing.PaymentEvent) { e.Ended, e.State = true, "canceled" }),
			}
			for _, n := range order {
				must(t, db.ApplyPayment(ctx, events[n], august))
			}
			if plan, err := db.PlanOf(ctx, team); err != nil || plan != credits.Pro {
				t.Errorf("order %d: %s, %v", i, plan, err)
			}
			check(t, db, team)
		}
		// At once, too.
		team, _ := newTeam(t, db)
		_, errs := atOnce(6, func(int) error { return db.ApplyPayment(ctx, event(team, "a", credits.Pro, 0, nil), august) })
		for _, err := range errs {
			must(t, err)
		}
		b, err := db.Balance(ctx, team, august)
		if err != nil || b.Credits.Monthly != 10_000*credits.Credit {
			t.Errorf("%s, %v", b.Credits.Monthly, err)
		}
		// What is of another shop changes nothing, and is not sent again for it.
		must(t, db.ApplyPayment(ctx, event("team_nobody", "a", credits.Pro, 0, nil), august))
		must(t, db.ApplyPayment(ctx, event(team, "c", "another product", 0, nil), august))
		must(t, db.ApplyPayment(ctx, billing.PaymentEvent{Kind: billing.InvoicePaid, Team: "team_nobody", Invoice: billing.InvoiceRef{ID: "in_0"}}, august))
		if plan, err := db.PlanOf(ctx, team); err != nil || plan != credits.Pro {
			t.Errorf("%s, %v", plan, err)
		}
		for range 3 {
			must(t, db.ApplyPayment(ctx, billing.PaymentEvent{Kind: billing.InvoicePaid, Team: team, Amount: 900, Currency: "usd", Invoice: billing.InvoiceRef{ID: "in_1", Number: "N-1", HostedURL: "https://pay.example.org/1"}}, august))
		}
		if list, err := db.Invoices(ctx, team, "", 10); err != nil || len(list) != 1 || list[0].Number != "N-1" || list[0].Amount != 900 || list[0].Secret != "" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func purchase(id string, team ids.Team, buyer ids.User, p credits.Package) (o billing.Purchase) {
	o.ID, o.Team, o.Buyer, o.Package, o.Secret, o.SecretHash = id, team, buyer, p, "secret", "hash of "+id
	o.State, o.CreatedAt, o.ExpiresAt = billing.OrderOpen, august, august.Add(time.Hour)
	return o
}

// An order is what the events say of it, in whatever order they come.
func TestAnOrderIsPaidOnceAndReturned(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		pack := credits.Package{Index: 0, Name: "1,000 credits", Credits: 1000 * credits.Credit, AmountMinor: 1000, Currency: "usd"}
		paid := func(o string) billing.PaymentEvent {
			return billing.PaymentEvent{Kind: billing.CheckoutPaid, Order: o, Payment: "pi " + o, Amount: 1000, Currency: "usd", Created: august}
		}
		refund := func(o string, minor int64) billing.PaymentEvent {
			return billing.PaymentEvent{Kind: billing.PaymentRefunded, Order: o, Refunded: minor, Created: august}
		}
		dispute := func(o string, kind billing.PaymentKind, seconds int) billing.PaymentEvent {
			return billing.PaymentEvent{Kind: kind, Order: o, Created: august.Add(time.Duration(seconds) * time.Second)}
		}
		for _, tt := range []struct {
			name   string
			events func(o string) []billing.PaymentEvent
			want   credits.Amount
		}{
			{"paid", func(o string) []billing.PaymentEvent { return []billing.PaymentEvent{paid(o), paid(o)} }, 1000},
			{"too little", func(o string) []billing.PaymentEvent {
				e := paid(o)
				e.Amount--
				return []billing.PaymentEvent{e}
			}, 0},
			{"another currency", func(o string) []billing.PaymentEvent {
				e := paid(o)
				e.Currency = "jpy"
				return []billing.PaymentEvent{e}
			}, 0},
			{"after it expired", func(o string) []billing.PaymentEvent {
				return []billing.PaymentEvent{dispute(o, billing.CheckoutExpired, 0), paid(o), dispute(o, billing.CheckoutExpired, 1)}
			}, 1000},
			{"a part goes back, told twice and late", func(o string) []billing.PaymentEvent {
				return []billing.PaymentEvent{refund(o, 500), paid(o), refund(o, 250), refund(o, 500)}
			}, 500},
			{"more than all goes back", func(o string) []billing.PaymentEvent {
				return []billing.PaymentEvent{paid(o), refund(o, 2000)}
			}, 0},
			{"disputed", func(o string) []billing.PaymentEvent {
				return []billing.PaymentEvent{paid(o), dispute(o, billing.DisputeOpened, 1)}
			}, 0},
			{"won, and told backwards", func(o string) []billing.PaymentEvent {
				return []billing.PaymentEvent{dispute(o, billing.DisputeWon, 2), dispute(o, billing.DisputeOpened, 1), paid(o)}
			}, 1000},
			{"lost", func(o string) []billing.PaymentEvent {
				return []billing.PaymentEvent{paid(o), dispute(o, billing.DisputeOpened, 1), dispute(o, billing.DisputeLost, 2), paid(o)}
			}, 0},
		} {
			team, owner := newTeam(t, db)
			o := ids.NewEntry()
			must(t, db.InsertOrder(ctx, purchase(o, team, owner, pack)))
			for _, e := range tt.events(o) {
				must(t, db.ApplyPayment(ctx, e, august))
			}
			b, err := db.Balance(ctx, team, august)
			if err != nil || b.Credits.TopUp != tt.want*credits.Credit {
				t.Errorf("%s: %s, %v; want %d", tt.name, b.Credits.TopUp, err, tt.want)
			}
			check(t, db, team)
		}
		team, owner := newTeam(t, db)
		o := ids.NewEntry()
		must(t, db.InsertOrder(ctx, purchase(o, team, owner, pack)))
		must(t, db.OpenedCheckout(ctx, o, "cs_1", nil, august))
		must(t, db.CancelOrder(ctx, o))
		if p, err := db.OrderBySecret(ctx, "hash of "+o); err != nil || p.State != billing.OrderCancelled || p.Session != "cs_1" {
			t.Errorf("%+v, %v", p, err)
		}
		late := paid("")
		late.Session = "cs_1" // somebody paid after all
		if done, errs := atOnce(5, func(int) error { return db.ApplyPayment(ctx, late, august) }); done != 5 {
			t.Error(errs)
		}
		must(t, db.CancelOrder(ctx, o)) // too late
		if p, err := db.OrderBySecret(ctx, "hash of "+o); err != nil || p.State != billing.OrderPaid {
			t.Errorf("%+v, %v", p, err)
		}
		if i, err := db.InvoiceBySecret(ctx, "hash of "+o); err != nil || i.Secret != "secret" || i.Amount != 1000 {
			t.Errorf("%+v, %v", i, err)
		}
		if b, err := db.Balance(ctx, team, august); err != nil || b.Credits.TopUp != 1000*credits.Credit {
			t.Errorf("%s, %v", b.Credits.TopUp, err)
		}
		unknown := refund("", 1)
		unknown.Payment = "pi_unknown"
		refused(t, "what nothing is known of yet", db.ApplyPayment(ctx, unknown, august), fault.KindUnavailable, "")
		must(t, db.ApplyPayment(ctx, paid("of another shop"), august))
		for _, err := range []error{second(db.OrderBySecret(ctx, "")), second(db.InvoiceBySecret(ctx, "nothing"))} {
			refused(t, "by no address of ours", err, fault.KindNotFound, "")
		}
		numbers, err := all(ctx, db, func(r *sql.Rows, n *string) error { return r.Scan(n) }, `SELECT number FROM invoices`)
		must(t, err)
		slices.Sort(numbers)
		if len(slices.Compact(slices.Clone(numbers))) != len(numbers) || len(numbers) == 0 {
			t.Errorf("invoices have the same numbers: %s", fmt.Sprint(numbers))
		}
	})
}
