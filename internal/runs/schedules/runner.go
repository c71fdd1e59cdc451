package schedules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/internal/domain/cron"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/firing"
	"github.com/millrace/millrace/internal/runs/offers"
)

// FiringStore knows which schedules of all teams are due. Each of its writes is
// for one due time, and changes nothing when somebody else was faster.
type FiringStore interface {
	// DueSchedules are enabled, and due by now, the longest due first.
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]Schedule, error)
	// NextDue is when the next one is; zero: never.
	NextDue(ctx context.Context) (time.Time, error)
	// WaitingSchedules are those of which the earlier run has ended, each with
	// its longest waiting firing.
	WaitingSchedules(ctx context.Context, limit int) ([]Schedule, error)
	// NoteFiring says what became of a due time without a run. More than most
	// waiting ones are skipped.
	NoteFiring(ctx context.Context, f firing.Firing, o Outcome, message string, most int, now time.Time) error
	// PauseSchedule says why the run of a due time could not start, and starts no
	// more. The letter goes to the maker, if their address is confirmed.
	PauseSchedule(ctx context.Context, s Schedule, f firing.Firing, p Pause, l mails.Message) error
}

// Runner starts runs when their time has come. Every server has one: the
// database sees to it that each due time is taken once.
type Runner struct {
	Store FiringStore
	Runs  Runs
	Base  string // the address of the app, for letters
	Sent  func() // tells the postman
	Log   *slog.Logger
	Now   func() time.Time
}

const (
	look  = 5 * time.Second // between two looks, at most
	batch = 50
	// atOnce are started together: one whose inputs lie on a slow host is looked at
	// for seconds.
	atOnce = 16
	// grace is how late a time may be and still count as met: a server was being
	// replaced. What is later was missed.
	grace = 5 * time.Minute
	// mostWaiting due times of a schedule wait for earlier runs.
	mostWaiting = 10
	mostCounted = 10_000
)

// Run starts runs until ctx ends.
func (r *Runner) Run(ctx context.Context) error {
	for {
		r.complain(ctx, "cannot look for schedules that are due", r.Round(ctx))
		wait := look
		if next, err := r.Store.NextDue(ctx); err == nil && !next.IsZero() {
			wait = min(look, max(time.Millisecond, next.Sub(r.Now())))
			if !next.After(r.Now()) { // it could not be started, and is tried again
				wait = look
			}
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

// Round starts what is due.
func (r *Runner) Round(ctx context.Context) error {
	for {
		due, err := r.Store.DueSchedules(ctx, r.Now(), batch)
		if err != nil {
			return err
		}
		var failed atomic.Int64
		var all errgroup.Group
		all.SetLimit(atOnce)
		for _, s := range due {
			all.Go(func() error {
				if err := r.fire(ctx, s); err != nil {
					failed.Add(1)
					r.complain(ctx, "a schedule could not start its run; it is tried again", err, slog.String("schedule", string(s.ID)))
				}
				return nil
			})
		}
		_ = all.Wait()
		if len(due) < batch || failed.Load() > 0 || ctx.Err() != nil {
			break
		}
	}
	waiting, err := r.Store.WaitingSchedules(ctx, batch)
	for _, s := range waiting {
		f := firing.Firing{Schedule: s.ID, Due: s.Firings[0].Due, Next: s.NextAt, Waited: true, Times: 1}
		if err := r.start(ctx, s, f); err != nil && !errors.Is(err, firing.ErrOverlap) {
			r.complain(ctx, "a schedule could not start its run; it is tried again", err, slog.String("schedule", string(s.ID)))
		}
	}
	return err
}

// fire starts the run of a schedule that is due, or says why there is none.
func (r *Runner) fire(ctx context.Context, s Schedule) error {
	now := r.Now()
	f := firing.Firing{Schedule: s.ID, Due: s.NextAt, Times: 1}
	times, err := s.times()
	if err != nil { // a time zone that this machine does not know any more
		return r.pause(ctx, s, f, fault.Invalid("its times cannot be read any more: %v", err))
	}
	f.Next = times.Next(s.NextAt)
	if late := now.Add(-grace); s.NextAt.Before(late) {
		f.Next, f.Times = times.Next(late), count(times, s.NextAt, late)
		if !s.CatchUp {
			return r.Store.NoteFiring(ctx, f, Missed, "no server ran at that time", mostWaiting, now)
		}
	}
	switch err := r.start(ctx, s, f); {
	case errors.Is(err, firing.ErrOverlap) && s.Overlap == Queue:
		return r.Store.NoteFiring(ctx, f, Waiting, "an earlier run has not ended", mostWaiting, now)
	case errors.Is(err, firing.ErrOverlap):
		return r.Store.NoteFiring(ctx, f, Skipped, "an earlier run had not ended", mostWaiting, now)
	default:
		return err
	}
}

// count is how many times there are from one on, up to another.
func count(times cron.Schedule, from, until time.Time) int {
	n := 1
	for t := times.Next(from); !t.IsZero() && !t.After(until) && n < mostCounted; t = times.Next(t) {
		n++
	}
	return n
}

// start starts a run. What is wrong with the run pauses the schedule; what is
// wrong with us comes back, and is tried again. While the team is suspended, or no
// worker that builds environments is there, its times pass by: they go on afterwards.
func (r *Runner) start(ctx context.Context, s Schedule, f firing.Firing) error {
	_, err := r.Runs.SubmitAutomatic(ctx, s.Team, s.Given.of(s.Workflow), runs.Automatic{
		Starter: runs.Starter{Type: firing.BySchedule, ID: string(s.ID), Name: s.CreatedByName}, For: s.CreatedBy, Firing: &f,
	})
	if err == nil || errors.Is(err, firing.ErrTaken) {
		return nil
	}
	if errors.Is(err, firing.ErrOverlap) {
		return err
	}
	switch fault.KindOf(err) {
	case fault.KindInternal, fault.KindUnavailable, fault.KindLimited:
		return err
	}
	if e, ok := errors.AsType[*fault.Error](err); ok && (e.Code == firing.TeamSuspended || e.Code == offers.NoEnvironments || e.Code == offers.NoEngine) {
		return r.Store.NoteFiring(ctx, f, Skipped, e.Message, mostWaiting, r.Now())
	}
	return r.pause(ctx, s, f, err)
}

func (r *Runner) pause(ctx context.Context, s Schedule, f firing.Firing, why error) error {
	p := Pause{At: r.Now(), Code: string(fault.KindOf(why)), Message: why.Error()}
	if e, ok := errors.AsType[*fault.Error](why); ok {
		p.Message = e.Message
		if e.Code != "" {
			p.Code = e.Code
		}
	}
	l := mails.Message{
		ID: ids.NewMail(), Team: s.Team, Subject: "A schedule of yours is paused",
		Text: fmt.Sprintf("Your schedule of the workflow %s could not start its run that was due at %s, and starts no more until somebody resumes it.\n\nThe reason:\n%s\n\n%s/workflows/%s/schedules\n",
			mails.QuotedName(s.WorkflowName), f.Due.UTC().Format("2 January 2006, 15:04 UTC"), p.Message, r.Base, s.Workflow),
	}
	err := r.Store.PauseSchedule(ctx, s, f, p, l)
	if err == nil && r.Sent != nil {
		r.Sent()
	}
	return err
}

func (r *Runner) complain(ctx context.Context, what string, err error, about ...any) {
	if err != nil && ctx.Err() == nil {
		r.Log.ErrorContext(ctx, what, append(about, slog.Any("error", err))...)
	}
}
