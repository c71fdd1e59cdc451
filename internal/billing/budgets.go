package billing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/domain/tags"
)

// BudgetScope says whose spending a budget bounds.
type BudgetScope string

// The scopes.
const (
	TeamBudget BudgetScope = "team"
	UserBudget BudgetScope = "user"
	TagBudget  BudgetScope = "tag"
)

// BudgetExhausted is the code of a refusal because a budget, or the run's own
// limit, is spent.
const BudgetExhausted = string(lifecycle.BudgetExhausted)

// Budget bounds what a team, a person or a tag spends in a calendar month.
type Budget struct {
	Scope   BudgetScope
	Subject string // a person's id, a tag; empty: the team
	Name    string // of the person
	Month   string // such as 2026-11, the only one it is for; empty: every month
	Limit   credits.Amount
	AlertAt []int // percents at which people are told, in order
	Hard    bool  // nothing goes beyond it

	Spent credits.Amount // in this month
	Held  credits.Amount // for runs that have not ended
}

// Month is how budgets name the month of a moment.
func Month(t time.Time) string { return t.UTC().Format("2006-01") }

// Left is what can still be spent; a budget that is passed has nothing.
func (b Budget) Left() credits.Amount { return max(0, b.Limit-b.Spent-b.Held) }

// Percent is how much of it is spent or held, of whole percents.
func (b Budget) Percent() int { return int((b.Spent + b.Held) * 100 / max(b.Limit, 1)) }

// Forecast is what will have been spent at the end of the month, if it goes on
// as it did since its beginning.
func (b Budget) Forecast(now time.Time) credits.Amount {
	start, end := credits.Period(now)
	elapsed := max(now.Sub(start), 24*time.Hour)
	return max(b.Spent+b.Held, credits.Amount(float64(b.Spent)*float64(end.Sub(start))/float64(elapsed)))
}

// Crossed is the highest percent that the budget has come to, of those at which
// people want to know; 0: none. A hard one in which no more of the same size
// fits is spent as a whole.
func (b Budget) Crossed(next credits.Amount) (percent int) {
	for _, at := range b.AlertAt {
		if b.Percent() >= at || at == 100 && b.Hard && next > 0 && b.Left() < next {
			percent = max(percent, at)
		}
	}
	return percent
}

// Of names the budget in a sentence.
func (b Budget) Of() string {
	of := "the team's budget"
	switch b.Scope {
	case UserBudget:
		of = "the budget of " + b.Name
	case TagBudget:
		of = "the budget of the tag " + b.Subject
	}
	if b.Month != "" {
		return of + " for " + b.Month
	}
	return of + " for this month"
}

// Exhausted says what to do about a budget that leaves no more.
func (b Budget) Exhausted() error {
	return fault.Payment("%s is spent: %s of %s credits are used or held. An owner or admin can raise it in Billing", b.Of(), b.Spent+b.Held, b.Limit).WithCode(BudgetExhausted)
}

// AlertMail is what people are told of a budget of the team with this name.
func AlertMail(b Budget, team ids.Team, name string, percent int) mails.Message {
	what := "Runs continue: the budget is not a hard limit."
	if b.Hard {
		what = "When it is spent, runs that count towards it are interrupted and no new ones start."
	}
	of := b
	of.Name = mails.QuotedName(b.Name)
	if b.Scope == TagBudget {
		of.Subject = mails.QuotedName(b.Subject)
	}
	return mails.Message{
		ID: ids.NewMail(), Team: team, Path: "/billing?team=" + string(team), Subject: fmt.Sprintf("A budget has reached %d %%", percent),
		Text: fmt.Sprintf("%s has reached %d %%: %s of %s credits are spent or held for runs.\n\n%s\n\nSee the costs under Billing in the team %s.\n", capital(of.Of()), percent, b.Spent+b.Held, b.Limit, what, mails.QuotedName(name)),
	}
}

func capital(s string) string { return "T" + s[1:] } // every name of a budget begins with "the"

// InForce are those of a team's budgets that count in a month: one for that
// month takes the place of one for every month.
func InForce(list []Budget, month string) []Budget {
	return slices.DeleteFunc(slices.Clone(list), func(b Budget) bool {
		if b.Month != "" {
			return b.Month != month
		}
		return slices.ContainsFunc(list, func(o Budget) bool { return o.Month == month && o.Scope == b.Scope && o.Subject == b.Subject })
	})
}

// Bounds reports whether the budget counts what a person spends with tags.
func (b Budget) Bounds(user ids.User, with []string) bool {
	return b.Scope == TeamBudget || b.Scope == UserBudget && b.Subject == string(user) || b.Scope == TagBudget && slices.Contains(with, b.Subject)
}

// BudgetStore keeps budgets and what counts against them.
type BudgetStore interface {
	// Budgets are a team's, with what was spent of them in the month of now.
	Budgets(ctx context.Context, team ids.Team, now time.Time) ([]Budget, error)
	// SetBudgets replaces them, and counts anew what was spent.
	SetBudgets(ctx context.Context, team ids.Team, list []Budget, now time.Time) error
	// NotMembers are those of the people who are not in the team.
	NotMembers(ctx context.Context, team ids.Team, list []string) ([]string, error)
}

// Budgets are the team's.
func (s *Service) Budgets(ctx context.Context, caller access.Caller) ([]Budget, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	return s.budgets.Budgets(ctx, caller.Team, s.now())
}

// MaxBudgets is how many a team has.
const MaxBudgets = 100

const maxLimit = 1_000_000_000 * credits.Credit

// SetBudgets replaces the team's budgets.
func (s *Service) SetBudgets(ctx context.Context, caller access.Caller, list []Budget) ([]Budget, error) {
	if err := caller.Must(access.ManageBilling); err != nil {
		return nil, err
	}
	if len(list) > MaxBudgets {
		return nil, fault.Problems([]fault.Detail{{Path: "budgets", Message: fmt.Sprintf("takes at most %d", MaxBudgets)}}, "a team has at most %d budgets", MaxBudgets)
	}
	wrong := checkBudgets(list)
	if len(wrong) == 0 {
		var err error
		if wrong, err = s.strangers(ctx, caller.Team, list); err != nil {
			return nil, err
		}
	}
	if len(wrong) > 0 {
		return nil, fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	if err := s.budgets.SetBudgets(ctx, caller.Team, list, s.now()); err != nil {
		return nil, err
	}
	return s.budgets.Budgets(ctx, caller.Team, s.now())
}

func checkBudgets(list []Budget) (wrong []fault.Detail) {
	type key struct{ scope, subject, month string }
	seen := map[key]bool{}
	for i, b := range list {
		note := func(field, message string) {
			wrong = append(wrong, fault.Detail{Path: fmt.Sprintf("budgets[%d].%s", i, field), Message: message})
		}
		switch b.Scope {
		case TeamBudget:
			if b.Subject != "" {
				note("subject", "must be empty: the budget is the whole team's")
			}
		case UserBudget:
			if !strings.HasPrefix(b.Subject, "user_") || !tags.Valid(b.Subject) { // an id is made of what tags are
				note("subject", "must be the id of a member of the team")
			}
		case TagBudget:
			if !tags.Valid(b.Subject) {
				note("subject", "must be a tag: 1 to 64 letters, digits or any of _ . : / -")
			}
		default:
			note("scope", "must be team, user or tag")
		}
		if _, err := time.Parse("2006-01", b.Month); b.Month != "" && err != nil {
			note("month", "must be a month such as 2026-11")
		}
		if b.Limit <= 0 || b.Limit > maxLimit {
			note("limit", "must be more than 0 and at most a billion credits, with at most 6 decimals")
		}
		if len(b.AlertAt) > 10 || slices.ContainsFunc(b.AlertAt, func(p int) bool { return p < 1 || p > 100 }) {
			note("alertAt", "takes at most ten percents from 1 to 100")
		}
		k := key{string(b.Scope), b.Subject, b.Month}
		if seen[k] {
			note("subject", "has a budget in this list already")
		}
		seen[k] = true
	}
	return wrong
}

// strangers finds budgets of people who are not in the team. One of somebody who
// has left may stay.
func (s *Service) strangers(ctx context.Context, team ids.Team, list []Budget) (wrong []fault.Detail, err error) {
	var people []string
	for _, b := range list {
		if b.Scope == UserBudget {
			people = append(people, b.Subject)
		}
	}
	if len(people) == 0 {
		return nil, nil
	}
	unknown, err := s.budgets.NotMembers(ctx, team, people)
	if err != nil || len(unknown) == 0 {
		return nil, err
	}
	before, err := s.budgets.Budgets(ctx, team, s.now())
	if err != nil {
		return nil, err
	}
	for i, b := range list {
		had := slices.ContainsFunc(before, func(o Budget) bool { return o.Scope == UserBudget && o.Subject == b.Subject })
		if b.Scope == UserBudget && !had && slices.Contains(unknown, b.Subject) {
			wrong = append(wrong, fault.Detail{Path: fmt.Sprintf("budgets[%d].subject", i), Message: "must be the id of a member of the team"})
		}
	}
	return wrong, nil
}

// addBudgets says which budgets a run would come up against. A hard one in which
// the first minute does not fit refuses it.
func (s *Service) addBudgets(ctx context.Context, caller access.Caller, q Question, e *Estimate) error {
	list, err := s.budgets.Budgets(ctx, caller.Team, s.now())
	if err != nil {
		return err
	}
	for _, b := range InForce(list, Month(s.now())) {
		if !b.Bounds(caller.User, q.Tags) {
			continue
		}
		if b.Hard && b.Left() < credits.HoldSeconds*e.PerSecond {
			if e.Allowed {
				e.Allowed, e.Reason = false, b.Exhausted().Error()
			}
			continue
		}
		if e.Typical == nil || e.Costs <= b.Left() {
			continue
		}
		then := "it would be passed"
		if b.Hard {
			then = "the run would be interrupted"
		}
		e.Warnings = append(e.Warnings, fmt.Sprintf("A typical run costs %s credits, and %s has %s left: %s.", e.Costs, b.Of(), b.Left(), then))
	}
	return nil
}
