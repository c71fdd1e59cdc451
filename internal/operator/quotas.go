package operator

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/quotas"
)

// TeamChange changes what a team has; what is nil stays.
type TeamChange struct {
	Plan   *credits.Plan
	Quotas quotas.Edit
}

// NewTeams is what new teams begin with.
type NewTeams struct {
	Plan   credits.Plan
	Quotas quotas.Quotas
}

// QuotaChanges is what operators change about what teams may use.
type QuotaChanges interface {
	// ChangeTeam changes a team in one step, and returns it as it is after that.
	ChangeTeam(ctx context.Context, team ids.Team, c TeamChange, now time.Time) (Team, error)
	// NewTeams is what new teams begin with; no plan is the free one.
	NewTeams(ctx context.Context) (NewTeams, error)
	ChangeNewTeams(ctx context.Context, c TeamChange) error
}

// ChangeTeam changes what a team may use. It counts for runs and uploads from then on.
func (s *Service) ChangeTeam(ctx context.Context, team ids.Team, c TeamChange) (Team, error) {
	if err := s.checkChange(c); err != nil {
		return Team{}, err
	}
	t, err := s.Changes.ChangeTeam(ctx, team, c, s.Now())
	if err == nil {
		s.Wake()
	}
	return t, err
}

// NewTeams is what new teams begin with.
func (s *Service) NewTeams(ctx context.Context) (NewTeams, error) {
	d, err := s.Changes.NewTeams(ctx)
	if d.Plan == "" {
		d.Plan = credits.Free
	}
	return d, err
}

// ChangeNewTeams changes what new teams begin with. It changes none that is there.
func (s *Service) ChangeNewTeams(ctx context.Context, c TeamChange) (NewTeams, error) {
	if err := s.checkChange(c); err != nil {
		return NewTeams{}, err
	}
	if err := s.Changes.ChangeNewTeams(ctx, c); err != nil {
		return NewTeams{}, err
	}
	return s.NewTeams(ctx)
}

func (s *Service) checkChange(c TeamChange) error {
	problems := c.Quotas.Problems()
	if c.Plan != nil {
		if _, ok := s.Catalog.Terms(*c.Plan); !ok {
			return wrong("plan", "is none of the plans, %v", s.Catalog.PlanNames())
		}
	}
	if len(problems) > 0 {
		return fault.Problems(problems, "%s %s", problems[0].Path, problems[0].Message)
	}
	if c.Plan == nil && c.Quotas.Empty() {
		return fault.Invalid("the change says nothing: name a plan or a quota")
	}
	return nil
}
