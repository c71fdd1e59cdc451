package finding

import (
	"context"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// RunStore deletes runs.
type RunStore interface {
	LeanRun(ctx context.Context, team ids.Team, id ids.Run) (runs.Run, error)
	// DeleteRun deletes a run that has ended with all that it made, unless a run
	// that has not ended takes something of it.
	DeleteRun(ctx context.Context, team ids.Team, id ids.Run) error
}

// DeleteRun deletes a run that has ended, with its log, events and outputs. What
// it cost stays in the ledger. Members may delete what they started.
func (s *Service) DeleteRun(ctx context.Context, caller access.Caller, id ids.Run) error {
	if err := caller.Must(access.DeleteRuns); err != nil {
		return err
	}
	r, err := s.runs.LeanRun(ctx, caller.Team, id)
	if err != nil {
		return err
	}
	if !r.Own(caller) && !caller.May(access.DeleteAnyRun) {
		return fault.Forbidden("only an admin or owner may delete someone else's run")
	}
	return s.runs.DeleteRun(ctx, caller.Team, id)
}
