package inputs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// Addresses knows what runs take from elsewhere.
type Addresses interface {
	AddressesOf(ctx context.Context, team ids.Team, id ids.Run) ([]addresses.Object, error)
	// LearntHashes completes objects with what the team knows of their bytes.
	LearntHashes(ctx context.Context, team ids.Team, list []addresses.Object) error
	// Learn records what the bytes of an object are, and returns what was recorded for
	// this run before.
	Learn(ctx context.Context, team ids.Team, id ids.Run, o addresses.Object, sum string, now time.Time) (before string, err error)
	// InputsFetched notes how far the inputs of a queued run are that the owner prepares.
	InputsFetched(ctx context.Context, owner string, id ids.Run, bytes, total int64) error
	// TeamsGone are those of the teams that are erased, or are being so.
	TeamsGone(ctx context.Context, teams []ids.Team) ([]ids.Team, error)
}

// Worker is what the runs on one worker share.
type Worker struct {
	Dir     string // of the attempts
	Owner   string // the worker's name
	Objects Open
	Remote  bool // objects lie on another machine
	Fetched *Fetched
	Known   Addresses
	Log     *slog.Logger
	Now     func() time.Time
}

// tellEvery is how often it is noted how far the inputs of a queued run are.
const tellEvery = 2 * time.Second

// Prepare fetches what nobody has read yet of a run's inputs, until ctx ends. What
// cannot be fetched is the run's to find out.
func (w *Worker) Prepare(ctx context.Context, team ids.Team, run ids.Run) {
	in := w.Of(ctx, runs.Run{ID: run, Team: team})
	defer in.stopFetching()
	if err := in.Load(ctx); err != nil {
		w.Log.WarnContext(ctx, "cannot prepare the inputs of a run", slog.String("run", string(run)), slog.Any("error", err))
		return
	}
	tell := time.NewTicker(tellEvery)
	defer tell.Stop()
	for errors.Is(in.Learn(in.urls()), ErrFetching) {
		select {
		case <-ctx.Done():
			return
		case <-in.Changed():
		case <-tell.C:
			bytes, total := in.Progress(in.urls())
			if err := w.Known.InputsFetched(ctx, w.Owner, run, bytes, total); err != nil {
				w.Log.WarnContext(ctx, "cannot note how far the inputs of a run are", slog.String("run", string(run)), slog.Any("error", err))
			}
		}
	}
}

// Release lets go of what was prepared for a run that does not start here.
func (w *Worker) Release(run ids.Run) {
	if err := w.Fetched.Release(run); err != nil {
		w.Log.Error("cannot make room for inputs", slog.Any("error", err))
	}
}

// CleanUp removes what is here of teams that are gone, and makes room on a disk that is
// nearly full.
func (w *Worker) CleanUp(ctx context.Context) error {
	teams, err := w.Fetched.Teams()
	if err != nil || len(teams) == 0 {
		return err
	}
	gone, err := w.Known.TeamsGone(ctx, teams)
	for _, team := range gone {
		err = errors.Join(err, w.Fetched.Forget(team))
	}
	if w.Fetched.Low() {
		err = errors.Join(err, w.Fetched.MakeRoom())
	}
	return err
}

// CodeOf is the code of a run that fails since its inputs cannot be had; empty for
// any other failure.
func CodeOf(err error) lifecycle.ErrorCode {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return lifecycle.DiskFull
	}
	known, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return ""
	}
	switch known.Code {
	case unreachableCode, changedCode, diskFullCode:
		return lifecycle.ErrorCode(known.Code)
	}
	return ""
}
