// Package billing keeps a team's credits: what it has, what it used, what a
// size costs, and how it buys more. The ledger is append-only; everything
// shown is its sum.
package billing

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Balance is what a team has at one moment.
type Balance struct {
	Plan    credits.Plan
	Period  time.Time      // start of the month
	Granted credits.Amount // monthly credits of the month
	Spent   credits.Amount // in the month, of either kind
	Credits credits.Balance
	Held    credits.Amount
	Stored  int64 // bytes kept and reserved

	Unverified bool // whoever made the team has not verified their address since
}

// Waiting reports whether the plan's credits are withheld until an address is
// verified. What is paid for never is.
func (b Balance) Waiting() bool { return b.Unverified && b.Plan == credits.Free }

// VerifyFirst is what to do about that.
const VerifyFirst = "confirm your email address first: then the team gets its monthly credits"

// Remaining is what can still be promised away.
func (b Balance) Remaining() credits.Amount { return max(0, b.Credits.Left()-b.Held) }

// EntryType says what an entry of the ledger is.
type EntryType string

// The types of entries.
const (
	RunEntry        EntryType = "run"
	StorageEntry    EntryType = "storage"
	TopUpEntry      EntryType = "topup"
	GrantEntry      EntryType = "grant"
	RefundEntry     EntryType = "refund"
	ExpiryEntry     EntryType = "expiry"
	AdjustmentEntry EntryType = "adjustment"
)

// Actor is who caused an entry.
type Actor struct {
	Type string // user or guest
	ID   string
	Name string
}

// Entry is one line of a team's ledger. Source and SourceID name what it is
// for; nothing is booked twice.
type Entry struct {
	ID          string
	Team        ids.Team
	Type        EntryType
	Source      string
	SourceID    string
	Credits     credits.Amount // spending is negative
	Run         ids.Run
	Workflow    ids.Workflow
	Actor       Actor
	Quantity    float64 // with Unit
	Unit        string
	Description string
	CreatedAt   time.Time

	VCPUSeconds int64 // that count against quotas; the ledger does not have them
}

// Day is what a team used on one day.
type Day struct {
	Date    time.Time
	Runs    int
	Compute credits.Amount
	Storage credits.Amount
}

// LedgerStore keeps balances and ledgers.
type LedgerStore interface {
	// Balance is what the team has, in this month: the first look at a new
	// month lets the old credits expire and grants the new ones.
	Balance(ctx context.Context, team ids.Team, now time.Time) (Balance, error)
	// Entries lists at most limit entries before the id, newest first.
	Entries(ctx context.Context, team ids.Team, before string, limit int) ([]Entry, error)
	// RunEntries are those of Entries that are about runs.
	RunEntries(ctx context.Context, team ids.Team, before string, limit int) ([]Entry, error)
	// Days sums up what was used since from; days without use are left out.
	Days(ctx context.Context, team ids.Team, from time.Time) ([]Day, error)
}

// Service answers a team's questions about its credits.
type Service struct {
	ledger   LedgerStore
	budgets  BudgetStore
	quotas   QuotaStore
	costs    CostStore
	orders   OrderStore
	history  History
	capacity Capacity
	catalog  credits.Catalog
	pay      Payments      // nil: no payments here
	sandbox  bool          // we show checkouts and invoices ourselves
	events   PaymentEvents // nil: the provider sends none
	now      func() time.Time
}

// Options are what the room is made of.
type Options struct {
	Ledger   LedgerStore
	Budgets  BudgetStore
	Quotas   QuotaStore
	Costs    CostStore
	Orders   OrderStore
	History  History
	Capacity Capacity
	Catalog  credits.Catalog
	Payments Payments
	Sandbox  bool // Payments is the built-in one
	Events   PaymentEvents
	Now      func() time.Time
}

// NewService makes the room.
func NewService(o Options) *Service {
	return &Service{ledger: o.Ledger, budgets: o.Budgets, quotas: o.Quotas, costs: o.Costs, orders: o.Orders, history: o.History, capacity: o.Capacity, catalog: o.Catalog, pay: o.Payments, events: o.Events, sandbox: o.Sandbox, now: o.Now}
}

// Balance is what the caller's team has, and how many bytes it may store: nil is no limit.
func (s *Service) Balance(ctx context.Context, caller access.Caller) (b Balance, storage *int64, err error) {
	if err := caller.Must(access.Read); err != nil {
		return b, nil, err
	}
	b, err = s.ledger.Balance(ctx, caller.Team, s.now())
	if err != nil {
		return b, nil, err
	}
	q, err := s.quotas.QuotasOf(ctx, caller.Team)
	storage = storageLimit(s.catalog.TermsOf(b.Plan).StorageBytes, q.Storage)
	if s.catalog.Off { // what it had waits for the day on which billing is on again
		b = Balance{Plan: b.Plan, Stored: b.Stored}
		b.Period, _ = credits.Period(s.now())
	}
	return b, storage, err
}

// Usage lists the ledger, newest first.
func (s *Service) Usage(ctx context.Context, caller access.Caller, before string, limit int) (list []Entry, more bool, err error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, false, err
	}
	if s.Off() {
		list, err = s.ledger.RunEntries(ctx, caller.Team, before, limit+1)
		for i := range list {
			list[i].Credits = 0
		}
	} else {
		list, err = s.ledger.Entries(ctx, caller.Team, before, limit+1)
	}
	if len(list) > limit {
		return list[:limit], true, err
	}
	return list, false, err
}

// dashboardDays are the ranges a dashboard shows.
var dashboardDays = map[int]bool{7: true, 30: true, 90: true, LongestReport: true}

// LongestReport is how many days of costs are read at most.
const LongestReport = 180

// Dashboard is what was used on each of the last days, today last, days
// without use included.
func (s *Service) Dashboard(ctx context.Context, caller access.Caller, days int) ([]Day, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	if !dashboardDays[days] {
		d := fault.Detail{Path: "days", Message: "must be 7, 30, 90 or 180"}
		return nil, fault.Problems([]fault.Detail{d}, "days must be 7, 30, 90 or 180")
	}
	today := s.now().UTC().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, 1-days)
	used, err := s.ledger.Days(ctx, caller.Team, first)
	if err != nil {
		return nil, err
	}
	if s.Off() {
		for i := range used {
			used[i].Compute, used[i].Storage = 0, 0
		}
	}
	series := make([]Day, days)
	for i := range series {
		series[i].Date = first.AddDate(0, 0, i)
	}
	for _, d := range used {
		if i := int(d.Date.Sub(first).Hours() / 24); i >= 0 && i < days {
			series[i] = d
		}
	}
	return series, nil
}
