package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/freshtest"
)

// These tests look inside a transaction, so they open databases themselves.
var databases = freshtest.New(Migrate)

func eachLedger(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, openLedger(t, databases.SQLite(t)))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, openLedger(t, databases.Postgres(t)))
	})
}

func openLedger(t testing.TB, url string) *DB {
	t.Helper()
	db, err := Open(t.Context(), Options{URL: url, SecretKey: "a secret key for tests only"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

var august = time.Date(2026, 8, 3, 12, 0, 0, 0, time.UTC)

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func newTeam(t fataler, db *DB) (team ids.Team, owner ids.User) {
	t.Helper()
	a := builtin.NewAccount{
		Account: builtin.Account{User: identity.User{ID: ids.NewUser(), Email: string(ids.NewUser()) + "@example.org"}},
		Team:    identity.Team{ID: ids.NewTeam(), Plan: string(credits.Free)}, CreatedAt: august,
	}
	if err := db.SignUp(context.Background(), a); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Balance(context.Background(), a.Team.ID, august); err != nil {
		t.Fatal(err)
	}
	return a.Team.ID, a.ID
}

func TestTheLastCreditsAreHeldOnce(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		var ok, refused atomic.Int32
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				err := db.Hold(t.Context(), team, fmt.Sprint("run", i), 50*credits.Credit, august) // 500 a month
				switch {
				case err == nil:
					ok.Add(1)
				case fault.Is(err, fault.KindPayment):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if ok.Load() != 10 || refused.Load() != 90 {
			t.Errorf("%d held and %d refused, want 10 and 90", ok.Load(), refused.Load())
		}
		check(t, db, team)
	})
}

// check holds the balance against the ledger and the holds.
func check(t fataler, db *DB, team ids.Team) {
	t.Helper()
	var monthly, topUp, held, sumMonthly, sumTopUp, sumHeld int64
	err := db.q.QueryRowContext(context.Background(), `
		SELECT b.monthly, b.top_up, b.held,
		       (SELECT COALESCE(SUM(monthly), 0) FROM ledger WHERE team_id = $1),
		       (SELECT COALESCE(SUM(top_up), 0) FROM ledger WHERE team_id = $1),
		       (SELECT COALESCE(SUM(amount), 0) FROM holds WHERE team_id = $1)
		FROM balances b WHERE b.team_id = $1`, team).Scan(&monthly, &topUp, &held, &sumMonthly, &sumTopUp, &sumHeld)
	if err != nil {
		t.Fatal(err)
	}
	if monthly != sumMonthly || topUp != sumTopUp || held != sumHeld || monthly < 0 || topUp < 0 || held < 0 {
		t.Fatal(fmt.Sprintf("balance %d + %d, held %d; ledger %d + %d, holds %d", monthly, topUp, held, sumMonthly, sumTopUp, sumHeld))
	}
}

var errCrash = errors.New("the power went")

// Random holds, settlements, crashes, top-ups, refunds, disputes, plans and
// months: the balance is always the sum of the ledger, never below zero, and
// what was granted less what left.
func TestTheBalanceIsTheSumOfTheLedgerWhateverHappens(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		rapid.Check(t, func(rt *rapid.T) {
			ctx := context.Background()
			m := &ledgerModel{db: db, now: august}
			m.team, m.owner = newTeam(rt, db)
			steps := rapid.IntRange(1, 30).Draw(rt, "steps")
			for range steps {
				m.now = m.now.Add(time.Duration(rapid.IntRange(0, 20*24).Draw(rt, "hours")) * time.Hour)
				step := m.step(rt)
				crash := rapid.IntRange(0, 4).Draw(rt, "crash") == 0
				err := db.inTx(ctx, func(tx *DB) error {
					if err := step(tx); err != nil {
						return err
					}
					if crash {
						return errCrash
					}
					return nil
				})
				if err != nil && !errors.Is(err, errCrash) && !fault.Is(err, fault.KindPayment) {
					rt.Fatal(err)
				}
				if err == nil {
					check(rt, db, m.team)
				}
			}
			if _, err := db.Balance(ctx, m.team, m.now); err != nil {
				rt.Fatal(err)
			}
			check(rt, db, m.team)
		})
	})
}

type ledgerModel struct {
	db     *DB
	team   ids.Team
	owner  ids.User
	now    time.Time
	holds  []string
	orders []billing.Purchase
}

func (m *ledgerModel) step(rt *rapid.T) func(*DB) error {
	ctx := context.Background()
	amount := credits.Amount(rapid.Int64Range(1, int64(700*credits.Credit)).Draw(rt, "amount"))
	switch rapid.IntRange(0, 6).Draw(rt, "what") {
	case 0:
		id := string(ids.NewRun())
		m.holds = append(m.holds, id)
		return func(tx *DB) error { return tx.Hold(ctx, m.team, id, amount, m.now) }
	case 1, 2:
		if len(m.holds) == 0 {
			return func(tx *DB) error { _, err := tx.Balance(ctx, m.team, m.now); return err }
		}
		id := rapid.SampledFrom(m.holds).Draw(rt, "hold")
		e := billing.Entry{Team: m.team, Type: billing.RunEntry, Source: "run", SourceID: id, CreatedAt: m.now, Description: "a run"}
		return func(tx *DB) error { return tx.SettleHold(ctx, id, e, amount) }
	case 3:
		p := m.purchase()
		m.orders = append(m.orders, p)
		return func(tx *DB) error { return tx.InsertOrder(ctx, p) }
	case 4:
		plan := rapid.SampledFrom(credits.Plans()).Draw(rt, "plan")
		return func(tx *DB) error { return tx.SetPlan(ctx, m.team, plan, m.now) }
	default:
		if len(m.orders) == 0 {
			return func(tx *DB) error { _, err := tx.Balance(ctx, m.team, m.now); return err }
		}
		p := rapid.SampledFrom(m.orders).Draw(rt, "order")
		e := billing.PaymentEvent{
			Kind: rapid.SampledFrom([]billing.PaymentKind{
				billing.CheckoutPaid, billing.CheckoutPaid, billing.CheckoutPending, billing.CheckoutFailed, billing.PaymentRefunded,
				billing.DisputeOpened, billing.DisputeWon, billing.DisputeLost,
			}).Draw(rt, "kind"),
			Order: p.ID, Team: m.team, Created: m.now, Amount: 1000, Currency: "usd", Refunded: rapid.Int64Range(0, 1200).Draw(rt, "refunded"),
		}
		return func(tx *DB) error { return tx.ApplyPayment(ctx, e, m.now) }
	}
}

func (m *ledgerModel) purchase() billing.Purchase {
	pack, _ := credits.DefaultCatalog().Package(0)
	id := ids.NewOrder()
	return billing.Purchase{
		Order: billing.Order{ID: id, Team: m.team, Package: pack, ExpiresAt: m.now.Add(time.Hour)},
		Buyer: m.owner, State: billing.OrderOpen, SecretHash: id, CreatedAt: m.now,
	}
}

func TestEventsInAnyOrderAndNumberEndTheSame(t *testing.T) {
	t.Parallel()
	story := []billing.PaymentEvent{
		{ID: "1", Kind: billing.CheckoutPending, Created: august},
		{ID: "2", Kind: billing.CheckoutPaid, Payment: "pi_1", Created: august.Add(time.Minute)},
		{ID: "3", Kind: billing.PaymentRefunded, Refunded: 250, Created: august.Add(2 * time.Minute)},
		{ID: "4", Kind: billing.PaymentRefunded, Refunded: 500, Created: august.Add(3 * time.Minute)},
		{ID: "5", Kind: billing.DisputeOpened, Created: august.Add(4 * time.Minute)},
		{ID: "6", Kind: billing.DisputeWon, Created: august.Add(5 * time.Minute)},
		{ID: "7", Kind: billing.InvoicePaid, Created: august.Add(time.Minute), Invoice: billing.InvoiceRef{ID: "in_1", Number: "A-1", PDFURL: "https://p", HostedURL: "https://h"}},
	}
	eachLedger(t, func(t *testing.T, db *DB) {
		for round := range 10 {
			m := &ledgerModel{db: db, now: august}
			m.team, m.owner = newTeam(t, db)
			p := m.purchase()
			if err := db.InsertOrder(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			var deliveries []billing.PaymentEvent
			for range 5 {
				deliveries = append(deliveries, story...)
			}
			rand.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
			var wg sync.WaitGroup
			for _, e := range deliveries {
				e.Order, e.Team, e.Amount, e.Currency = p.ID, m.team, 1000, "usd"
				wg.Go(func() {
					if err := db.ApplyPayment(t.Context(), e, august); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			b, err := db.Balance(t.Context(), m.team, august)
			if err != nil || b.Credits.TopUp != 500*credits.Credit { // half of 1,000 went back
				t.Fatalf("round %d ends with %v, %v", round, b.Credits, err)
			}
			check(t, db, m.team)
			list, err := db.Invoices(t.Context(), m.team, "", 24)
			if err != nil || len(list) != 1 || list[0].HostedURL != "https://h" || list[0].Number != "A-1" {
				t.Fatalf("invoices: %+v, %v", list, err)
			}
		}
	})
}

func TestAMonthLeavesNothingButTopUps(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		grant := billing.Entry{Team: team, Type: billing.GrantEntry, Source: "admin", SourceID: "1", Credits: 30 * credits.Credit, CreatedAt: august}
		for range 3 { // booked once
			if err := db.Grant(ctx, grant); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Hold(ctx, team, "run_1", 100*credits.Credit, august); err != nil {
			t.Fatal(err)
		}
		run := billing.Entry{Team: team, Type: billing.RunEntry, Source: "run", SourceID: "run_1", CreatedAt: august}
		for range 3 { // settled once
			if err := db.SettleHold(ctx, "run_1", run, 120*credits.Credit); err != nil {
				t.Fatal(err)
			}
		}
		b, err := db.Balance(ctx, team, august)
		if err != nil || b.Credits != (credits.Balance{Monthly: 380 * credits.Credit, TopUp: 30 * credits.Credit}) || b.Spent != 120*credits.Credit || b.Held != 0 {
			t.Fatalf("in August: %+v, %v", b, err)
		}
		b, err = db.Balance(ctx, team, august.AddDate(0, 2, 0))
		if err != nil || b.Credits != (credits.Balance{Monthly: 500 * credits.Credit, TopUp: 30 * credits.Credit}) || b.Spent != 0 {
			t.Fatalf("in October: %+v, %v", b, err)
		}
		check(t, db, team)
		if err := db.SetPlan(ctx, team, credits.Pro, august.AddDate(0, 2, 0)); err != nil {
			t.Fatal(err)
		}
		if b, err = db.Balance(ctx, team, august.AddDate(0, 2, 0)); err != nil || b.Granted != 10_000*credits.Credit {
			t.Fatalf("on pro: %+v, %v", b, err)
		}
		check(t, db, team)
	})
}

func TestARunThatCostsMoreThanIsLeftEndsAtZero(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		if err := db.Hold(ctx, team, "run_1", credits.Credit, august); err != nil {
			t.Fatal(err)
		}
		run := billing.Entry{Team: team, Type: billing.RunEntry, Source: "run", SourceID: "run_1", CreatedAt: august}
		if err := db.SettleHold(ctx, "run_1", run, 600*credits.Credit); err != nil {
			t.Fatal(err)
		}
		check(t, db, team)
		entries, err := db.Entries(ctx, team, "", 10)
		if err != nil || len(entries) != 3 || entries[1].Credits != -600*credits.Credit || entries[0].Type != billing.AdjustmentEntry || entries[0].Credits != 100*credits.Credit {
			t.Errorf("%+v, %v", entries, err)
		}
		days, err := db.Days(ctx, team, august.Truncate(24*time.Hour))
		if err != nil || len(days) != 1 || days[0].Compute != 600*credits.Credit || days[0].Runs != 1 {
			t.Errorf("%+v, %v", days, err)
		}
	})
}

func TestStorageIsChargedOnceADayAndOnlyOnPaidPlans(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		paid, _ := newTeam(t, db)
		free, _ := newTeam(t, db)
		start := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
		if err := db.SetPlan(ctx, paid, credits.Pro, start); err != nil {
			t.Fatal(err)
		}
		for _, team := range []ids.Team{paid, free} {
			if fits, err := db.addStorage(ctx, team, 10*credits.GB, 0); err != nil || !fits {
				t.Fatal(fits, err)
			}
		}
		end := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
		for at := start; at.Before(end); at = at.Add(time.Hour) {
			for range 2 { // two servers
				if _, err := db.SampleStorage(ctx, at.Add(7*time.Minute)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := db.ChargeStorage(ctx, end.Add(-time.Minute).Add(2*time.Minute)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		entries, err := db.Entries(ctx, paid, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		var sum credits.Amount
		var n int
		for _, e := range entries {
			if e.Type == billing.StorageEntry {
				sum += e.Credits
				n++
			}
		}
		if n != 30 || sum != -30*credits.Credit { // 10 GB for a month at 3 credits
			t.Errorf("%d entries of %v", n, sum)
		}
		entries, err = db.Entries(ctx, free, "", 100)
		for _, e := range entries {
			if err != nil || e.Type == billing.StorageEntry {
				t.Errorf("the free plan pays: %+v, %v", e, err)
			}
		}
		check(t, db, paid)
	})
}
