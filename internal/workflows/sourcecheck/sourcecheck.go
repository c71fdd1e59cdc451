// Package sourcecheck asks Git hosts, apart from any request, what the code of
// workflows has come to: whether it can be had, and how far it is ahead of the
// last run.
package sourcecheck

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
)

// Status is what is known of a workflow's code.
type Status struct {
	Commit     string    // that of the newest run which used some; empty: none did
	Latest     string    // what the ref stands for; empty: not known
	ResolvedAt time.Time // when that was found out
	Behind     int       // commits that the run lacks; -1: not known
	Problem    string    // why it is not known
}

// Due is a workflow whose host is to be asked.
type Due struct {
	Team     ids.Team
	Workflow ids.Workflow
	Source   source.Source
	Commit   string // of the newest run
}

// Store is what this room asks of the database.
type Store interface {
	// SourceStatus is what is known of a workflow's code. One without any is
	// fault.KindNotFound.
	SourceStatus(ctx context.Context, team ids.Team, id ids.Workflow) (Status, error)
	// AskForSource has a host asked that was not since a time.
	AskForSource(ctx context.Context, team ids.Team, id ids.Workflow, since, now time.Time) error
	// TakeDueSource takes the one that waits for longest, and leaves it to others
	// from a time on. None is fault.KindNotFound.
	TakeDueSource(ctx context.Context, now, again time.Time) (Due, error)
	// SetSourceStatus keeps what a host has said, unless the workflow has other
	// code by now.
	SetSourceStatus(ctx context.Context, d Due, s Status, now time.Time) error
}

// Repositories knows Git hosts.
type Repositories interface {
	Latest(ctx context.Context, team ids.Team, s source.Source) (commit string, err error)
	// Behind counts the commits that one has and another has not; -1 where
	// nobody can tell.
	Behind(ctx context.Context, team ids.Team, s source.Source, commit, latest string) (int, error)
}

// Service answers for a team's code, and asks.
type Service struct {
	Store        Store
	Repositories Repositories
	Log          *slog.Logger
	Now          func() time.Time
}

const (
	// Pause is how often a host is asked about one workflow, at most.
	Pause    = time.Minute
	lookTime = 2 * time.Minute // of one question
	lookEach = 3 * time.Second
)

// Status is what is known of a workflow's code. Somebody who looks has it
// brought up to date, unless it is.
func (s *Service) Status(ctx context.Context, caller access.Caller, id ids.Workflow) (Status, error) {
	if err := caller.Must(access.Read); err != nil {
		return Status{}, err
	}
	status, err := s.Store.SourceStatus(ctx, caller.Team, id)
	if err != nil {
		return Status{}, err
	}
	now := s.Now()
	return status, s.Store.AskForSource(ctx, caller.Team, id, now.Add(-Pause), now)
}

// Run asks until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	look := time.NewTicker(lookEach)
	defer look.Stop()
	for {
		more, err := s.Next(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "cannot look after a workflow's code", slog.Any("error", err))
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

// Next asks about one workflow, and reports whether there was one.
func (s *Service) Next(ctx context.Context) (bool, error) {
	now := s.Now()
	d, err := s.Store.TakeDueSource(ctx, now, now.Add(2*lookTime))
	if fault.Is(err, fault.KindNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	status, err := s.look(limited, d)
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	if err != nil {
		known, ok := errors.AsType[*fault.Error](err)
		if !ok {
			return true, err
		}
		status.Problem = known.Message
	}
	return true, s.Store.SetSourceStatus(ctx, d, status, s.Now())
}

func (s *Service) look(ctx context.Context, d Due) (status Status, err error) {
	status = Status{Commit: d.Commit, Behind: -1}
	if d.Source.Git == "" {
		return status, nil // a draft, which says so itself
	}
	if status.Latest, err = s.Repositories.Latest(ctx, d.Team, d.Source); err != nil {
		return status, err
	}
	switch d.Commit {
	case "":
	case status.Latest:
		status.Behind = 0
	default:
		if n, err := s.Repositories.Behind(ctx, d.Team, d.Source, d.Commit, status.Latest); err == nil {
			status.Behind = n // else it is not known, and the code can be had all the same
		}
	}
	return status, nil
}
