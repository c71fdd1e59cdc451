package operator

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/mails"
)

// Changes is what operators change. What is not there is fault.KindNotFound.
type Changes interface {
	GrantTo(ctx context.Context, g Grant, now time.Time) error
	PutOnPlan(ctx context.Context, team ids.Team, plan credits.Plan, now time.Time) error
	QuotaChanges
	SuspendTeam(ctx context.Context, team ids.Team, yes bool, now time.Time) error
	DrainWorker(ctx context.Context, worker string, yes bool) error
	// CancelAnyRun ends a queued run, and asks the worker of another to; one that
	// has ended is fault.KindConflict.
	CancelAnyRun(ctx context.Context, id ids.Run, now time.Time) (lifecycle.Status, error)
}

// Mailbox takes mails to be sent.
type Mailbox interface {
	LeaveMail(ctx context.Context, m mails.Message, now time.Time) error
}

const (
	longestReason = 200
	mostCredits   = 1_000_000_000 * credits.Credit
)

// Grant is credits for a team.
type Grant struct {
	Team    ids.Team
	Credits credits.Amount // negative ones are taken back
	Reason  string         // that the team reads
	Once    *access.IdempotencyRecord
}

// Grant gives a team credits that do not expire.
func (s *Service) Grant(ctx context.Context, g Grant) error {
	if g.Credits == 0 || g.Credits > mostCredits || g.Credits < -mostCredits {
		return wrong("credits", "must be between -1,000,000,000 and 1,000,000,000, and not 0")
	}
	if g.Reason = strings.TrimSpace(g.Reason); utf8.RuneCountInString(g.Reason) > longestReason || strings.ContainsFunc(g.Reason, unicode.IsControl) {
		return wrong("reason", "has at most %d characters, in one line", longestReason)
	}
	if g.Reason == "" {
		g.Reason = "granted by the operator"
	}
	return s.Changes.GrantTo(ctx, g, s.Now())
}

// wrong is what is wrong with one field.
func wrong(field, format string, args ...any) error {
	d := fault.Detail{Path: field, Message: fmt.Sprintf(format, args...)}
	return fault.Problems([]fault.Detail{d}, "%s %s", d.Path, d.Message)
}

// SetPlan puts a team on one of the plans.
func (s *Service) SetPlan(ctx context.Context, team ids.Team, plan credits.Plan) error {
	if _, ok := s.Catalog.Terms(plan); !ok {
		return wrong("plan", "is none of the plans, %v", s.Catalog.PlanNames())
	}
	return s.Changes.PutOnPlan(ctx, team, plan, s.Now())
}

// Suspend has a team start no runs, or lifts that. What runs goes on;
// what waits, waits.
func (s *Service) Suspend(ctx context.Context, team ids.Team, yes bool) error {
	if err := s.Changes.SuspendTeam(ctx, team, yes, s.Now()); err != nil {
		return err
	}
	s.Wake()
	return nil
}

// Drain has a worker take no more runs, or lifts that. What it executes it
// finishes.
func (s *Service) Drain(ctx context.Context, worker string, yes bool) error {
	if err := s.Changes.DrainWorker(ctx, worker, yes); err != nil {
		return err
	}
	s.Wake()
	return nil
}

// End cancels a run of any team.
func (s *Service) End(ctx context.Context, id ids.Run) (lifecycle.Status, error) {
	status, err := s.Changes.CancelAnyRun(ctx, id, s.Now())
	if err == nil {
		s.Cancel(id)
	}
	return status, err
}

// TestMail sends a mail to the operator who asks.
func (s *Service) TestMail(ctx context.Context, to string) error {
	m := mails.Message{ID: ids.NewMail(), To: to, Subject: "Test email", Text: "This server can send email. You requested this test on the Installation page.\n"}
	if err := s.Mailbox.LeaveMail(ctx, m, s.Now()); err != nil {
		return err
	}
	s.SendSoon()
	return nil
}
