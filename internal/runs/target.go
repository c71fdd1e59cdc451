package runs

import (
	"context"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/outputto"
)

func (r Run) asker() outputto.Asker {
	return outputto.Asker{Team: r.Team, Run: r.ID, Guest: r.Invite != ""}
}

// outputCopy is where a run's outputs are copied; nil: nowhere.
func (s *Service) outputCopy(ctx context.Context, r Run) (*outputto.Copy, error) {
	c, err := s.known.OutputCopyOf(ctx, r.Team, r.ID)
	if fault.Is(err, fault.KindNotFound) {
		return nil, nil //nolint:nilnil // most runs have none
	}
	return &c, err
}

// OutputsToCopy are the verified outputs of a run of a team.
func (s *Service) OutputsToCopy(ctx context.Context, team ids.Team, id ids.Run) (Run, []Listed, error) {
	r, err := s.store.Run(ctx, team, id)
	if err != nil {
		return r, nil, err
	}
	list, _, err := s.outputs(ctx, r, OutputQuery{})
	return r, list, err
}
