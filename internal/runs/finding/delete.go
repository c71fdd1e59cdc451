package finding

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// Deleted is what is kept of a deleted run: by what its cost is counted.
type Deleted struct {
	ID   ids.Run
	For  ids.User // in whose name it started by itself; empty: whoever the ledger names
	Tags []string
	At   time.Time // zero: not known
}

// RunStore deletes runs.
type RunStore interface {
	LeanRun(ctx context.Context, team ids.Team, id ids.Run) (runs.Run, error)
	// DeleteRun deletes a run that has ended with all that it made, unless a run
	// that has not ended takes something of it. It returns the bytes that are to be
	// deleted.
	DeleteRun(ctx context.Context, team ids.Team, id ids.Run, now time.Time) (pending []string, err error)
	// DeletedRuns are those after one, by id.
	DeletedRuns(ctx context.Context, team ids.Team, after ids.Run, limit int) ([]Deleted, error)
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
		return fault.Forbidden("only admins and owners can delete someone else's run")
	}
	pending, err := s.runs.DeleteRun(ctx, caller.Team, id, s.now())
	if err == nil && s.deleteBytes != nil {
		_ = s.deleteBytes(ctx, pending) // upkeep deletes what is left
	}
	return err
}

// DeleteBytes has the bytes of deleted runs deleted at once: an object store gives them to
// whoever has an address until then.
func (s *Service) DeleteBytes(now func(ctx context.Context, keys []string) error) {
	s.deleteBytes = now
}

// DeletedRuns is what is kept of deleted runs, by id.
func (s *Service) DeletedRuns(ctx context.Context, caller access.Caller, after ids.Run, limit int) ([]Deleted, error) {
	if err := caller.Must(access.ExportTeam); err != nil {
		return nil, err
	}
	return s.runs.DeletedRuns(ctx, caller.Team, after, limit)
}
