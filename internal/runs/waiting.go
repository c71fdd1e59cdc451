package runs

import (
	"context"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs/offers"
)

// explainWaiting says of the queued ones among a team's runs why they wait, and of
// the reported ones whether anything is heard of them.
func (s *Service) explainWaiting(ctx context.Context, team ids.Team, list ...*Run) error {
	var waiting []ids.Run
	for _, r := range list {
		r.Waiting = r.silence(s.now())
		if r.Status == lifecycle.Queued {
			waiting = append(waiting, r.ID)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	q, err := s.details.QueueState(ctx, team, waiting, s.now())
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.Status == lifecycle.Queued {
			r.Waiting = q.Why(r.AsQueued())
		}
	}
	return nil
}

// AsQueued is what decides over how long it waits.
func (r Run) AsQueued() offers.Queued {
	return offers.Queued{ID: r.ID, Size: r.Size, Executor: r.Executor, Started: !r.StartedAt.IsZero()}
}
