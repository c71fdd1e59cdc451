package workflows

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
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

// RefreshesAtOnce are those of one server, and of them so many of a team. They mostly
// wait for a host; package turns says why there are so many.
const (
	RefreshesAtOnce = 64
	refreshesOfTeam = 2
	// MaxBusyTeams is how many teams can have all that they may under way.
	MaxBusyTeams = RefreshesAtOnce / refreshesOfTeam
)

const (
	refreshTime = 2 * time.Minute  // after which another server does it, or the same once more
	refreshMost = 90 * time.Second // for one
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

// Run refreshes until ctx ends, several workflows at once and few of one team, so
// that a host that takes its time holds up nobody else's.
func (r *Refresher) Run(ctx context.Context) error {
	look := time.NewTicker(refreshEach)
	defer look.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	ended := make(chan ids.Team, RefreshesAtOnce)
	under := map[ids.Team]int{} // way, of each team
	for running := 0; ; {
		if running < RefreshesAtOnce {
			d, err := r.take(ctx, full(under))
			if err == nil {
				running++
				under[d.Team]++
				all.Go(func() {
					r.complain(ctx, r.refresh(ctx, d))
					ended <- d.Team
				})
				continue
			}
			if !fault.Is(err, fault.KindNotFound) {
				r.complain(ctx, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case team := <-ended:
			running--
			if under[team]--; under[team] == 0 {
				delete(under, team)
			}
		case <-look.C:
		}
	}
}

func (r *Refresher) complain(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		r.Log.ErrorContext(ctx, "cannot refresh a workflow", panics.About(err)...)
	}
}

// full are the teams that have as many refreshes under way as one may.
func full(under map[ids.Team]int) (teams []ids.Team) {
	for team, n := range under {
		if n >= refreshesOfTeam {
			teams = append(teams, team)
		}
	}
	return teams
}

// Next refreshes one workflow, and reports whether there was one. What is wrong
// with its repository is noted with it.
func (r *Refresher) Next(ctx context.Context) (bool, error) {
	d, err := r.take(ctx, nil)
	if fault.Is(err, fault.KindNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, r.refresh(ctx, d)
}

// take takes a workflow that is due, of a team that is not busy.
func (r *Refresher) take(ctx context.Context, busy []ids.Team) (DueRefresh, error) {
	now := r.Workflows.now()
	return r.Workflows.stores.Follow.TakeDueRefresh(ctx, now, now.Add(refreshTime), busy)
}

func (r *Refresher) refresh(ctx context.Context, d DueRefresh) error {
	s := r.Workflows
	err := panics.Catch(func() error { return r.bring(ctx, d) })
	if panics.Is(err) { // which would happen again
		r.complain(ctx, err)
		err = s.stores.Follow.SetRefreshProblem(ctx, d.Team, d.Workflow, "an internal error kept the server from reading the repository", s.now())
	}
	if known, ok := errors.AsType[*fault.Error](err); ok && known.Kind == fault.KindUnavailable { // it is still being fetched, or we have no room now
		if s.now().Sub(d.AskedAt) < refreshLong {
			return nil // again, when its time has come
		}
		err = s.stores.Follow.SetRefreshProblem(ctx, d.Team, d.Workflow, known.Message, s.now())
	}
	if _, foreseen := errors.AsType[*fault.Error](err); err != nil && !foreseen {
		return err // again, when its time has come
	}
	return s.stores.Follow.EndRefresh(ctx, d, s.now())
}

// bring has a workflow's definition be what its repository has now.
func (r *Refresher) bring(ctx context.Context, d DueRefresh) error {
	s := r.Workflows
	if !d.Role.May(access.EditWorkflows) {
		return s.stores.Follow.SetRefreshProblem(ctx, d.Team, d.Workflow, "who made the trigger that was called may not edit workflows any more", s.now())
	}
	limited, cancel := context.WithTimeout(ctx, refreshMost)
	defer cancel()
	_, err := s.refresh(limited, d.Team, d.Workflow, access.Author{User: d.By, Guest: gitAuthor, GuestName: gitAuthorName})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fault.Unavailable("the repository did not answer within %s", refreshMost)
	}
	return err
}
