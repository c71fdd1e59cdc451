package ai

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
)

// Limits are how many papers may be read a day.
type Limits struct {
	PerOwner   int // for a team, or one visitor
	PerAddress int // for all visitors from one address
	Visitors   int // for all visitors together

	// PDFs that could not be read. They cost no analysis, but they cost us work.
	FailedPerOwner   int
	FailedPerAddress int
}

// DefaultLimits are the specification's, with room for a lecture hall behind
// one address.
func DefaultLimits() Limits {
	return Limits{PerOwner: 20, PerAddress: 100, Visitors: 1000, FailedPerOwner: 20, FailedPerAddress: 100}
}

// FailedPDFs is how many of a day could not be read.
type FailedPDFs struct {
	Owner, Address int
}

// FailedRefused is nil, or why one more PDF that cannot be read would be too
// many.
func (l Limits) FailedRefused(p Payer, f FailedPDFs, now time.Time) error {
	over := func(format string, args ...any) error {
		return fault.Limited(Tomorrow(now).Sub(now), format+"; try again after 00:00 UTC", args...).WithCode("unreadable_pdfs_exhausted")
	}
	switch {
	case f.Owner >= l.FailedPerOwner:
		return over("%d of your PDFs could not be read today", l.FailedPerOwner)
	case p.Address != "" && f.Address >= l.FailedPerAddress:
		return over("%d PDFs from your address could not be read today: sign in to get your own quota", l.FailedPerAddress)
	}
	return nil
}

// Charged is what counts towards the limits on one day.
type Charged struct {
	Owner, Address, Visitors int
}

// Refused is nil, or why one more would be too many. Quotas are whole again at
// 00:00 UTC.
func (l Limits) Refused(o Owner, c Charged, now time.Time) error {
	over := func(format string, args ...any) error {
		return fault.Limited(Tomorrow(now).Sub(now), format+"; the quota resets at 00:00 UTC", args...).WithCode("analysis_quota_exhausted")
	}
	switch {
	case c.Owner >= l.PerOwner && o.Visitor == "":
		return over("this team has reached its daily limit of %d analyses (--analyses-per-day)", l.PerOwner)
	case c.Owner >= l.PerOwner:
		return over("you've reached your daily limit of %d analyses (--analyses-per-day)", l.PerOwner)
	case o.Visitor != "" && c.Address >= l.PerAddress:
		return over("visitors from your address have reached the daily limit of %d analyses: sign in to get your own quota", l.PerAddress)
	case o.Visitor != "" && c.Visitors >= l.Visitors:
		return over("all visitors together have used up today's analyses: sign in to get your own quota")
	}
	return nil
}

// Day is the day that a moment belongs to: they all begin at 00:00 UTC.
func DayOf(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }

// Tomorrow is when quotas are whole again.
func Tomorrow(now time.Time) time.Time { return DayOf(now).AddDate(0, 0, 1) }

// Quota is where an owner stands.
type Quota struct {
	Limit, Used, Remaining int
	ResetsAt               time.Time
}

// Quota is what the owner has left today.
func (s *Service) Quota(ctx context.Context, o Owner) (Quota, error) {
	now := s.Now()
	c, err := s.Use.Charged(ctx, o, DayOf(now))
	l := s.Limits
	q := Quota{Limit: l.PerOwner, Used: c.Owner, Remaining: l.PerOwner - c.Owner, ResetsAt: Tomorrow(now)}
	if o.Visitor != "" {
		q.Remaining = min(q.Remaining, l.PerAddress-c.Address, l.Visitors-c.Visitors)
	}
	q.Remaining = max(0, q.Remaining)
	return q, err
}

// Day is what a team used of papers and chat on one day.
type Day struct {
	Date             time.Time
	Requests         int // to the chat
	PromptTokens     int64
	CompletionTokens int64
	Analyses         int
}

// Days is what the caller's team used on each day since from; days without use
// are left out.
func (s *Service) Days(ctx context.Context, caller access.Caller, from time.Time) ([]Day, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	return s.Use.AIDays(ctx, caller.Team, from)
}
