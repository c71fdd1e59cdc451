package workflows

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// DueRefresh is a workflow whose trigger was called.
type DueRefresh struct {
	Team     ids.Team
	Workflow ids.Workflow
	By       ids.User // who made the trigger
	AskedAt  time.Time
	Role     access.Role // of who made it; empty: none
}

// RefreshPause is how often triggers have one workflow refreshed, at most.
const RefreshPause = time.Minute

const (
	refreshTime = 2 * time.Minute  // after which another server does it, or the same once more
	refreshLong = 20 * time.Minute // for which a slow repository is waited for
	refreshEach = 3 * time.Second
)

// gitAuthor marks what a trigger has brought from Git. Like what a guest draws,
// it is not run by schedules until a member stands behind it: whoever may push
// to the repository need not be of the team.
const gitAuthor, gitAuthorName = "git", "Git"

// Refresher refreshes workflows whose triggers were called, apart from any
// request.
type Refresher struct {
	Workflows *Service
	Log       *slog.Logger
}

// Run refreshes until ctx ends.
func (r *Refresher) Run(ctx context.Context) error {
	look := time.NewTicker(refreshEach)
	defer look.Stop()
	for {
		more, err := r.Next(ctx)
		if err != nil && ctx.Err() == nil {
			r.Log.ErrorContext(ctx, "cannot refresh a workflow", slog.Any("error", err))
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

// Next refreshes one workflow, and reports whether there was one. What is wrong
// with its repository is noted with it.
func (r *Refresher) Next(ctx context.Context) (bool, error) {
	s := r.Workflows
	now := s.now()
	d, err := s.stores.Follow.TakeDueRefresh(ctx, now, now.Add(refreshTime))
	if fault.Is(err, fault.KindNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if d.Role.May(access.EditWorkflows) {
		_, err = s.refresh(ctx, d.Team, d.Workflow, access.Author{User: d.By, Guest: gitAuthor, GuestName: gitAuthorName})
	} else {
		err = s.stores.Follow.SetRefreshProblem(ctx, d.Team, d.Workflow, "who made the trigger that was called may not edit workflows any more", now)
	}
	if known, ok := errors.AsType[*fault.Error](err); ok && known.Kind == fault.KindUnavailable { // it is still being fetched, or we have no room now
		if s.now().Sub(d.AskedAt) < refreshLong {
			return true, nil // again, when its time has come
		}
		err = s.stores.Follow.SetRefreshProblem(ctx, d.Team, d.Workflow, known.Message, s.now())
	}
	if _, foreseen := errors.AsType[*fault.Error](err); err != nil && !foreseen {
		return true, err // again, when its time has come
	}
	return true, s.stores.Follow.EndRefresh(ctx, d, s.now())
}
