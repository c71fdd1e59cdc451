package billing

import (
	"context"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Typical is what earlier runs of a workflow took.
type Typical struct {
	P50Seconds int64
	P90Seconds int64
}

// History knows earlier runs. Without any, known is false.
type History interface {
	Typical(ctx context.Context, team ids.Team, id ids.Workflow) (t Typical, known bool, err error)
}

// Capacity knows what can ever be served here.
type Capacity interface {
	// Serves reports whether an executor, or some one without a name, can serve a
	// size and what it costs in percent of the rates; if not, why.
	// Allowed are the executors that the team may use; nil are all.
	Serves(ctx context.Context, executor string, allowed []string, s credits.Size) (percent int, reason string, ok bool)
}

// Question is what an estimate is asked for.
type Question struct {
	Custom   *credits.Custom
	Profile  string
	Workflow ids.Workflow // empty: of no workflow in particular
	Tags     []string     // that the run would have
	Executor string       // empty: the first that serves it
}

// Estimate is what a size costs this team.
type Estimate struct {
	Allowed   bool
	Reason    string
	PerSecond credits.Amount
	PerHour   credits.Amount
	Size      credits.Size
	Terms     credits.PlanTerms
	Lasts     int64 // seconds that the remaining credits pay for
	Typical   *Typical
	Costs     credits.Amount // of a typical run
	Warnings  []string       // which budgets it would pass
}

// Estimate says what a size costs and whether the team may and can use it.
func (s *Service) Estimate(ctx context.Context, caller access.Caller, q Question) (Estimate, error) {
	b, _, err := s.Balance(ctx, caller)
	if err != nil {
		return Estimate{}, err
	}
	terms := s.catalog.TermsOf(b.Plan)
	size, wrong := credits.Resolve(q.Custom, q.Profile)
	if len(wrong) > 0 {
		return Estimate{}, fault.Problems(wrong, "%s", wrong[0].Sentence())
	}
	quota, err := s.quotas.VCPUUse(ctx, caller.Team, caller.User, s.now())
	if err != nil {
		return Estimate{}, err
	}
	percent, reason, served := s.capacity.Serves(ctx, q.Executor, quota.Quotas.Executors, size)
	rates := s.catalog.Rates.Percent(percent)
	e := Estimate{
		Reason: reason, Allowed: served,
		PerSecond: rates.PerSecond(size), PerHour: rates.PerHour(size), Size: size, Terms: terms,
		Lasts: rates.Lasts(size, b.Remaining()),
	}
	if s.catalog.Off {
		e.Lasts = lastsForever
	}
	if e.Allowed {
		e.Reason, e.Allowed = terms.Allows(size)
	}
	if e.Allowed && e.Lasts < credits.HoldSeconds {
		e.Allowed, e.Reason = false, "not enough credits left to start this: buy a top-up, choose a smaller size, or wait for the next month"
		if b.Waiting() {
			e.Reason = VerifyFirst
		}
	}
	addQuotas(quota, s.now(), &e)
	if err := s.addTypical(ctx, caller.Team, q.Workflow, rates, &e); err != nil {
		return e, err
	}
	return e, s.addBudgets(ctx, caller, q, &e)
}

// lastsForever is for how many seconds something lasts that costs nothing: the largest
// number that every reader of JSON has exactly.
const lastsForever = 1<<53 - 1

func (s *Service) addTypical(ctx context.Context, team ids.Team, workflow ids.Workflow, rates credits.Rates, e *Estimate) error {
	if workflow == "" {
		return nil
	}
	t, known, err := s.history.Typical(ctx, team, workflow)
	if err != nil || !known {
		return err
	}
	e.Typical, e.Costs = &t, rates.Cost(e.Size, t.P50Seconds)
	return nil
}
