// Package account erases a team with all its data, and deletes people's accounts. It closes the team first,
// and then goes through everything that is kept of it until nothing is left
// but what the law wants: invoices, without a name.
package account

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Erasure is a team that is being erased, or the tombstone of one that is.
type Erasure struct {
	Team     ids.Team
	Counts   map[string]int // what is gone, by kind
	Erased   bool
	ClosedAt time.Time
	// SweepUntil is when nothing can arrive for the team any more.
	SweepUntil time.Time
}

// Store is what this room asks of the database.
type Store interface {
	// CloseTeam shuts everybody out of a team at once, revokes its links and
	// tokens, and notes that it is to be erased: all of it or nothing.
	CloseTeam(ctx context.Context, team ids.Team, l Lifetimes, now time.Time) error
	// GoneTeams are those of the teams that are closed or were erased.
	GoneTeams(ctx context.Context, list []ids.Team) ([]ids.Team, error)
	// Erasure is fault.KindNotFound where there is none.
	Erasure(ctx context.Context, team ids.Team) (Erasure, error)
	// ClaimErasure takes one that nobody is at and whose time has come; none is
	// fault.KindNotFound.
	ClaimErasure(ctx context.Context, now, until time.Time) (Erasure, error)
}

// Eraser removes what the database knows of a team. Each may be called again.
type Eraser interface {
	// AttemptPrefixes are where objects of the team's attempts lie: their rows go
	// with EraseRows.
	AttemptPrefixes(ctx context.Context, team ids.Team) ([]string, error)
	// EraseRows removes everything, the team last, in small transactions. A
	// team with a run that has not ended is fault.KindConflict.
	EraseRows(ctx context.Context, team ids.Team) error
	// Scrub removes what deleted rows leave behind in the database's files.
	Scrub(ctx context.Context) error
	// MarkErased makes the record a tombstone, to be swept at a time.
	MarkErased(ctx context.Context, team ids.Team, now, sweepAt time.Time) error
	// DeleteTombstone removes the tombstone.
	DeleteTombstone(ctx context.Context, team ids.Team) error
}

// RunStore knows the runs of a team.
type RunStore interface {
	// CancelRuns calls off up to limit runs that have not ended, and lists
	// them: none is left when the list is empty.
	CancelRuns(ctx context.Context, team ids.Team, limit int, now time.Time) ([]ids.Run, error)
	// RunsAmong are those of the runs that are the team's.
	RunsAmong(ctx context.Context, team ids.Team, list []ids.Run) ([]ids.Run, error)
}

// Objects keeps the team's bytes.
type Objects interface {
	DeletePrefix(ctx context.Context, prefix string) (n int, err error)
}

// Engine carries the team's runs out.
type Engine interface {
	Cancel(id ids.Run)
	// LocalRuns are the runs of which something is left on this machine.
	LocalRuns(ctx context.Context) ([]ids.Run, error)
}

// Mailbox keeps mails that nobody has taken away, on this machine.
type Mailbox interface {
	Teams(ctx context.Context) ([]ids.Team, error)
	Forget(ctx context.Context, team ids.Team) error
}

// Lifetimes say how long something may still arrive for a team.
type Lifetimes struct {
	UploadLink time.Duration // until an address stops taking an upload
	Transfer   time.Duration // that an upload which began in time may take
}

// Options are what the room is made of.
type Options struct {
	Store     Store
	Eraser    Eraser
	People    People
	Runs      RunStore
	Objects   Objects
	Engine    Engine
	Mailbox   Mailbox // nil: mails are sent
	Lifetimes Lifetimes
	Log       *slog.Logger
	Now       func() time.Time
}

// Service erases teams.
type Service struct {
	Options
	wake chan struct{}
}

// NewService makes the room.
func NewService(o Options) *Service { return &Service{Options: o, wake: make(chan struct{}, 1)} }

const answerPause = 50 * time.Millisecond // between two looks whether it is done

// Erase closes the caller's team and returns when it is erased. Once it has
// begun it ends, whatever happens to the caller or to this process.
func (s *Service) Erase(ctx context.Context, caller access.Caller, confirm string) (Erasure, error) {
	if err := caller.Must(access.EraseTeam); err != nil {
		return Erasure{}, err
	}
	if confirm != string(caller.Team) {
		d := fault.Detail{Path: "confirm", Message: "is not the id of the team"}
		return Erasure{}, fault.Problems([]fault.Detail{d}, "to erase the team, send its id %s as `confirm`", caller.Team)
	}
	if err := s.Store.CloseTeam(ctx, caller.Team, s.Lifetimes, s.Now()); err != nil {
		return Erasure{}, err
	}
	s.wakeUp()
	for {
		e, err := s.Store.Erasure(ctx, caller.Team)
		if err != nil || e.Erased {
			return e, err
		}
		if !pause(ctx, answerPause) {
			return e, fault.Unavailable("the team is closed; erasing it goes on without you")
		}
	}
}

// wakeUp has what is closed erased at once.
func (s *Service) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
