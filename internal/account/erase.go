package account

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

const (
	round      = 5 * time.Second  // between two looks for what another server left undone
	lease      = 20 * time.Second // until another server takes an erasure over
	runsPause  = 100 * time.Millisecond
	cancelled  = 100       // runs at once
	sweepPause = time.Hour // between two looks for uploads that began in time
	slack      = time.Minute
)

// Run erases the teams that are closed, and sweeps up after those that are
// erased, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(round)
	defer tick.Stop()
	for {
		s.eraseAll(ctx)
		s.logError(ctx, "cannot forget mails; it is tried again", s.forget(ctx))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.wake:
		}
	}
}

func (s *Service) eraseAll(ctx context.Context) {
	for ctx.Err() == nil {
		e, err := s.Store.ClaimErasure(ctx, s.Now(), s.Now().Add(lease))
		if fault.Is(err, fault.KindNotFound) {
			return
		}
		if err == nil {
			err = s.eraseTeam(ctx, e)
		}
		if err != nil {
			s.logError(ctx, "cannot erase a team; it is tried again", err, slog.String("team", string(e.Team)))
			return
		}
	}
}

func (s *Service) logError(ctx context.Context, what string, err error, about ...any) {
	if err != nil && ctx.Err() == nil {
		s.Log.ErrorContext(ctx, what, append(about, slog.Any("error", err))...)
	}
}

// forget removes mails on this machine that tell of teams which another
// server erases, or erased while this one was down.
func (s *Service) forget(ctx context.Context) error {
	if s.Mailbox == nil {
		return nil
	}
	teams, err := s.Mailbox.Teams(ctx)
	if err != nil || len(teams) == 0 {
		return err
	}
	gone, err := s.Store.GoneTeams(ctx, teams)
	for _, team := range gone {
		err = errors.Join(err, s.Mailbox.Forget(ctx, team))
	}
	return err
}

// eraseTeam does all that is left to do. Every step may be done again, so that
// whoever takes over after a crash begins at the first one.
func (s *Service) eraseTeam(ctx context.Context, e Erasure) error {
	if e.Erased {
		return s.sweep(ctx, e)
	}
	for {
		if err := s.endRuns(ctx, e.Team); err != nil {
			return err
		}
		if err := s.empty(ctx, e.Team); err != nil {
			return err
		}
		if err := s.emptyAttempts(ctx, e.Team); err != nil {
			return err
		}
		err := s.Eraser.EraseRows(ctx, e.Team)
		if err == nil {
			break
		}
		if !fault.Is(err, fault.KindConflict) { // a run that was accepted in the last moment
			return err
		}
	}
	if err := s.empty(ctx, e.Team); err != nil { // what came after its row was gone
		return err
	}
	if err := s.Eraser.Scrub(ctx); err != nil {
		return err
	}
	return s.Eraser.MarkErased(ctx, e.Team, s.Now(), e.ClosedAt.Add(s.Lifetimes.UploadLink+slack))
}

// endRuns calls every run off and waits until nothing of them is at work.
func (s *Service) endRuns(ctx context.Context, team ids.Team) error {
	for {
		open, err := s.Runs.CancelRuns(ctx, team, cancelled, s.Now())
		if err != nil {
			return err
		}
		for _, id := range open {
			s.Engine.Cancel(id)
		}
		if len(open) == 0 {
			left, err := s.atWork(ctx, team)
			if err != nil || !left {
				return err
			}
		}
		if !pause(ctx, runsPause) {
			return ctx.Err()
		}
	}
}

func (s *Service) atWork(ctx context.Context, team ids.Team) (bool, error) {
	here, err := s.Engine.LocalRuns(ctx)
	if err != nil || len(here) == 0 {
		return false, err
	}
	theirs, err := s.Runs.RunsAmong(ctx, team, here)
	return len(theirs) > 0, err
}

// empty removes what lies outside of the database.
func (s *Service) empty(ctx context.Context, team ids.Team) error {
	_, err := s.Objects.DeletePrefix(ctx, "teams/"+string(team)+"/")
	if s.Mailbox != nil {
		err = errors.Join(err, s.Mailbox.Forget(ctx, team))
	}
	return err
}

// emptyAttempts removes what was staged for attempts and not released.
func (s *Service) emptyAttempts(ctx context.Context, team ids.Team) error {
	prefixes, err := s.Eraser.AttemptPrefixes(ctx, team)
	for _, prefix := range prefixes {
		if _, err := s.Objects.DeletePrefix(ctx, prefix); err != nil {
			return err
		}
	}
	return err
}

// sweep removes what arrived after all by an address that was open when the
// team was closed. The last look takes the tombstone away.
func (s *Service) sweep(ctx context.Context, e Erasure) error {
	now := s.Now()
	if err := s.empty(ctx, e.Team); err != nil {
		return err
	}
	if now.Before(e.SweepUntil) {
		return s.Eraser.MarkErased(ctx, e.Team, now, now.Add(min(sweepPause, e.SweepUntil.Sub(now))))
	}
	return s.Eraser.DeleteTombstone(ctx, e.Team)
}
