package billing_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/payments/sandbox"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// bench is the room on a real database, with a team.
type bench struct {
	*billing.Service
	t       *testing.T
	db      *store.DB
	clock   *storetest.Clock
	options billing.Options
	owner   access.Caller
}

// machine serves up to so many vCPUs.
type machine int

func (m machine) Serves(_ context.Context, executor string, _ []string, s credits.Size) (int, string, bool) {
	if executor == "dear" {
		return 150, "", true
	}
	return 100, "no machine is so large", s.VCPU <= int(m)
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, clock: storetest.NewClock(), owner: storetest.Owner(t, db, "ada")}
		b.options = billing.Options{
			Ledger: db, Budgets: db, Quotas: db, Costs: db, Orders: db, History: db, Capacity: machine(64), Catalog: credits.DefaultCatalog(),
			Payments: sandbox.Sandbox{}, Sandbox: true, Now: b.clock.Now,
		}
		b.Service = billing.NewService(b.options)
		test(t, b)
	})
}

// with is the same room made of something else.
func (b *bench) with(change func(*billing.Options)) *billing.Service {
	o := b.options
	change(&o)
	return billing.NewService(o)
}

func (b *bench) left() credits.Amount {
	b.t.Helper()
	balance, _, err := b.Balance(b.t.Context(), b.owner)
	if err != nil {
		b.t.Fatal(err)
	}
	return balance.Remaining()
}

// buy opens a checkout and returns the secret of its address.
func (b *bench) buy() string {
	b.t.Helper()
	url, err := b.StartTopUp(b.t.Context(), b.owner, billing.TopUp{Base: "http://a", BuyerEmail: "ada@example.org"})
	if err != nil {
		b.t.Fatal(err)
	}
	_, secret, found := strings.Cut(url, "http://a/checkout/")
	if !found {
		b.t.Fatalf("the checkout is at %s", url)
	}
	return secret
}

func TestWhoSeesAndWhoSpends(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for role, tt := range map[access.Role]struct{ see, spend fault.Kind }{
			access.Owner: {"", ""}, access.Admin: {"", ""}, access.Member: {"", fault.KindForbidden}, access.Viewer: {"", fault.KindForbidden},
			access.GuestEditor: {fault.KindForbidden, fault.KindForbidden},
		} {
			as := b.owner
			as.Role = role
			_, _, err := b.Balance(t.Context(), as)
			storetest.Refused(t, string(role)+" asks for the balance", err, tt.see)
			_, _, err = b.Usage(t.Context(), as, "", 10)
			storetest.Refused(t, string(role)+" reads the ledger", err, tt.see)
			_, err = b.Dashboard(t.Context(), as, 7)
			storetest.Refused(t, string(role)+" looks at the dashboard", err, tt.see)
			_, err = b.Estimate(t.Context(), as, billing.Question{})
			storetest.Refused(t, string(role)+" asks what it costs", err, tt.see)
			_, err = b.Packages(as)
			storetest.Refused(t, string(role)+" sees packages", err, tt.spend)
			_, err = b.StartTopUp(t.Context(), as, billing.TopUp{Base: "http://a"})
			storetest.Refused(t, string(role)+" buys", err, tt.spend)
			_, _, err = b.Invoices(t.Context(), as, "", 10, "http://a")
			storetest.Refused(t, string(role)+" reads invoices", err, tt.spend)
		}
	})
}

func TestADashboardHasEveryDay(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, days := range []int{-1, 0, 1, 8, 365} {
			_, err := b.Dashboard(t.Context(), b.owner, days)
			storetest.Refused(t, fmt.Sprint(days), err, fault.KindInvalid)
		}
		for _, days := range []int{7, 30, 90, 180} {
			series, err := b.Dashboard(t.Context(), b.owner, days)
			today := b.clock.Now().UTC().Truncate(24 * time.Hour)
			if err != nil || len(series) != days || !series[days-1].Date.Equal(today) || !series[0].Date.Equal(today.AddDate(0, 0, 1-days)) {
				t.Errorf("%d days: %v, %v", days, series, err)
			}
		}
	})
}

func TestAnEstimateSaysWhyNot(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ask := func(s *billing.Service, vcpu, ram int) billing.Estimate {
			t.Helper()
			e, err := s.Estimate(t.Context(), b.owner, billing.Question{Custom: &credits.Custom{VCPU: vcpu, RAMGB: ram}})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		if e := ask(b.Service, 2, 8); !e.Allowed || e.PerHour == 0 || e.Lasts <= credits.HoldSeconds || e.Typical != nil {
			t.Errorf("%+v", e)
		}
		dear, err := b.Estimate(t.Context(), b.owner, billing.Question{Custom: &credits.Custom{VCPU: 2, RAMGB: 8}, Executor: "dear"})
		if usual := ask(b.Service, 2, 8); err != nil || 2*dear.PerHour != 3*usual.PerHour || dear.Lasts >= usual.Lasts {
			t.Errorf("where an hour costs half as much again: %+v, %v", dear, err)
		}
		if e := ask(b.Service, 8, 32); e.Allowed || e.Reason == "" {
			t.Errorf("more than the plan: %+v", e)
		}
		if e := ask(b.with(func(o *billing.Options) { o.Capacity = machine(1) }), 2, 8); e.Allowed || e.Reason != "no machine is so large" {
			t.Errorf("more than the machine: %+v", e)
		}
		if err := b.db.Hold(t.Context(), b.owner.Team, "run_x", b.left(), b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		if e := ask(b.Service, 2, 8); e.Allowed || e.Lasts != 0 || !strings.Contains(e.Reason, "credits") {
			t.Errorf("without credits: %+v", e)
		}
		_, err = b.Estimate(t.Context(), b.owner, billing.Question{Profile: "gigantic"})
		storetest.Refused(t, "an unknown profile", err, fault.KindInvalid)
	})
}

func TestACheckoutIsPaidOnceHoweverOften(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		before, secret := b.left(), b.buy()
		if p, err := b.Checkout(t.Context(), secret); err != nil || p.State != billing.OrderOpen || b.left() != before {
			t.Fatalf("%s, %v", p.State, err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if p, err := b.PayCheckout(t.Context(), secret); err != nil || p.State != billing.OrderPaid {
					t.Errorf("%s, %v", p.State, err)
				}
			})
		}
		wg.Wait()
		pack := credits.DefaultCatalog().Packages[0]
		if got := b.left() - before; got != pack.Credits {
			t.Errorf("%d credits for a package of %d", got, pack.Credits)
		}
		if p, err := b.CancelCheckout(t.Context(), secret); err != nil || p.State != billing.OrderPaid {
			t.Errorf("what is paid stays paid: %s, %v", p.State, err)
		}
		list, more, err := b.Invoices(t.Context(), b.owner, "", 10, "http://b")
		if err != nil || len(list) != 1 || more || !strings.HasPrefix(list[0].HostedURL, "http://b/invoices/") || list[0].Amount != pack.AmountMinor {
			t.Fatalf("%+v %v", list, err)
		}
		shown, err := b.Invoice(t.Context(), strings.TrimPrefix(list[0].HostedURL, "http://b/invoices/"), "http://b")
		if err != nil || shown.ID != list[0].ID {
			t.Errorf("%+v %v", shown, err)
		}
		entries, more, err := b.Usage(t.Context(), b.owner, "", 1)
		if err != nil || len(entries) != 1 || !more || entries[0].Type != billing.TopUpEntry || entries[0].Credits != pack.Credits {
			t.Errorf("%+v %v %v", entries, more, err)
		}
	})
}

func TestACheckoutThatEndedTakesNoMoney(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		before, called, late := b.left(), b.buy(), b.buy()
		if p, err := b.CancelCheckout(t.Context(), called); err != nil || p.State != billing.OrderCancelled {
			t.Errorf("%s, %v", p.State, err)
		}
		b.clock.Pass(23 * time.Hour)
		for secret, want := range map[string]billing.OrderState{called: billing.OrderCancelled, late: billing.OrderExpired} {
			if p, err := b.PayCheckout(t.Context(), secret); err != nil || p.State != want {
				t.Errorf("%s, want %s: %v", p.State, want, err)
			}
		}
		if b.left() != before {
			t.Error("there are credits for it")
		}
		_, err := b.Checkout(t.Context(), "nobody's")
		storetest.Refused(t, "an address of nobody", err, fault.KindNotFound)
		_, err = b.Invoice(t.Context(), "nobody's", "http://a")
		storetest.Refused(t, "an invoice of nobody", err, fault.KindNotFound)
	})
}

// provider fails, or sends what the test wants.
type provider struct {
	err   error
	event billing.PaymentEvent
}

func (p provider) Start(context.Context, billing.Order) (billing.CheckoutSession, error) {
	return billing.CheckoutSession{ID: "cs_1", URL: "https://pay.example"}, p.err
}

func (p provider) Event([]byte, string, time.Time) (billing.PaymentEvent, error) {
	return p.event, p.err
}

func TestWhereNobodyTakesMoneyNothingIsSold(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		none := b.with(func(o *billing.Options) { o.Payments, o.Sandbox = nil, false })
		_, err := none.StartTopUp(t.Context(), b.owner, billing.TopUp{Base: "http://a"})
		storetest.Refused(t, "buying", err, fault.KindUnavailable)
		storetest.Refused(t, "a webhook", none.Webhook(t.Context(), nil, ""), fault.KindUnavailable)
		_, err = b.StartTopUp(t.Context(), b.owner, billing.TopUp{Package: 99, Base: "http://a"})
		storetest.Refused(t, "no such package", err, fault.KindInvalid)

		// A checkout of the sandbox mints credits: without the sandbox it is closed,
		// even to who has its address.
		secret := b.buy()
		for name, pay := range map[string]func(context.Context, string) (billing.Purchase, error){"see": none.Checkout, "pay": none.PayCheckout, "cancel": none.CancelCheckout} {
			_, err := pay(t.Context(), secret)
			storetest.Refused(t, name, err, fault.KindNotFound)
		}
		away := b.with(func(o *billing.Options) { o.Payments, o.Sandbox = provider{err: fault.Unavailable("away")}, false })
		_, err = away.StartTopUp(t.Context(), b.owner, billing.TopUp{Base: "http://a"})
		storetest.Refused(t, "a provider that is away", err, fault.KindUnavailable)
	})
}

func TestEventsOfAProviderAreTakenInOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		hook := func(p provider) error {
			return b.with(func(o *billing.Options) { o.Events = p }).Webhook(t.Context(), []byte("{}"), "signature")
		}
		storetest.Refused(t, "a bad signature", hook(provider{err: fault.Invalid("no")}), fault.KindInvalid)
		storetest.Refused(t, "nothing of ours", hook(provider{event: billing.PaymentEvent{Kind: billing.Irrelevant, Order: "nobody's"}}), "")
		before, secret := b.left(), b.buy()
		order, err := b.Checkout(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		paid := billing.PaymentEvent{
			ID: "evt_1", Kind: billing.CheckoutPaid, Created: b.clock.Now(), Order: order.ID, Team: b.owner.Team, Payment: "pi_1",
			Amount: order.Package.AmountMinor, Currency: order.Package.Currency,
		}
		for range 3 {
			storetest.Refused(t, "paid", hook(provider{event: paid}), "")
		}
		if got := b.left() - before; got != order.Package.Credits {
			t.Errorf("%d credits for a package of %d", got, order.Package.Credits)
		}
		refund := paid
		refund.ID, refund.Kind, refund.Refunded = "evt_2", billing.PaymentRefunded, paid.Amount
		for range 2 {
			storetest.Refused(t, "refunded", hook(provider{event: refund}), "")
		}
		if got := b.left(); got != before {
			t.Errorf("%d credits are left of a refund", got-before)
		}
	})
}

func TestThePlanIsTheLargestThatIsPaidFor(t *testing.T) {
	t.Parallel()
	c := credits.DefaultCatalog()
	for want, list := range map[credits.Plan][]billing.Subscription{
		credits.Free: {{Plan: "no such plan"}, {Plan: credits.Free}},
		"pro":        {{Plan: "pro"}, {Plan: credits.Free}},
		"team":       {{Plan: "pro"}, {Plan: "team"}},
	} {
		if got := billing.PlanOf(list, c); got != want {
			t.Errorf("%v: %s, want %s", list, got, want)
		}
	}
}
