package schedules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/cron"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/offers"
)

// FiringStore knows which schedules of all teams are due. Each of its writes is
// for one due time, and changes nothing when somebody else was faster.
type FiringStore interface {
	// DueSchedules are enabled, and due by now: of each team up to ofTeam. Those that
	// were not tried yet come first, the longest due before the others.
	DueSchedules(ctx context.Context, now time.Time, ofTeam, limit int) ([]Schedule, error)
	// NextDue is when the next one is due after a time; zero: never.
	NextDue(ctx context.Context, after time.Time) (time.Time, error)
	// WaitingSchedules are those of which the earlier run has ended, each with
	// its longest waiting firing, in the order of DueSchedules.
	WaitingSchedules(ctx context.Context, now time.Time, ofTeam, limit int) ([]Schedule, error)
	// RetrySchedule has what is due, or waits, tried again at a time.
	RetrySchedule(ctx context.Context, s Schedule, at time.Time) error
	// NoteFiring says what became of a due time without a run. More than most
	// waiting ones are skipped.
	NoteFiring(ctx context.Context, f runs.Firing, o Outcome, message string, most int, now time.Time) error
	// PauseSchedule says why the run of a due time could not start, and starts no
	// more. The letter goes to the maker, if their address is confirmed.
	PauseSchedule(ctx context.Context, s Schedule, f runs.Firing, p Pause, l mails.Message) error
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

	mu    sync.Mutex
	busy  map[ids.Schedule]ids.Team // those that are being started
	work  sync.WaitGroup
	ended chan struct{} // one of them has been; nil: nobody waits for that
}

const (
	look = 5 * time.Second // between two looks, at most
	// atOnce are started together, and teamAtOnce of one team: one whose inputs lie on a
	// slow host is looked at for seconds.
	atOnce     = 64
	teamAtOnce = 4
	batch      = 2 * atOnce
	// maxPause is the longest until one is tried again that could not be started.
	maxPause = 5 * time.Minute
	// grace is how late a time may be and still count as met: a server was being
	// replaced. What is later was missed.
	grace = 5 * time.Minute
	// mostWaiting due times of a schedule wait for earlier runs.
	mostWaiting = 10
	mostCounted = 10_000
)

// Run starts runs until ctx ends.
func (r *Runner) Run(ctx context.Context) error {
	r.ended = make(chan struct{}, 1)
	defer r.work.Wait()
	for {
		_, err := r.beginDue(ctx)
		if err == nil {
			_, err = r.beginWaiting(ctx)
		}
		r.complain(ctx, "cannot look for schedules that are due", err)
		wait := look
		if next, err := r.Store.NextDue(ctx, r.Now()); err == nil && !next.IsZero() {
			wait = min(look, max(time.Millisecond, next.Sub(r.Now())))
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		case <-r.ended: // there may be a turn for the next one
			t.Stop()
		}
	}
}

// Round starts what is due, and returns when that has ended.
func (r *Runner) Round(ctx context.Context) error {
	for _, begin := range []func(context.Context) (int, error){r.beginDue, r.beginWaiting} {
		for {
			n, err := begin(ctx)
			r.work.Wait()
			if err != nil {
				return err
			}
			if n == 0 || ctx.Err() != nil {
				break
			}
		}
	}
	return nil
}

// beginDue begins to start what is due, and returns how many that are.
func (r *Runner) beginDue(ctx context.Context) (begun int, err error) {
	due, err := r.Store.DueSchedules(ctx, r.Now(), teamAtOnce, batch)
	for _, s := range due {
		if r.begin(ctx, s, func() error { return r.fire(ctx, s) }) {
			begun++
		}
	}
	return begun, err
}

// beginWaiting begins to start what has waited for an earlier run.
func (r *Runner) beginWaiting(ctx context.Context) (begun int, err error) {
	waiting, err := r.Store.WaitingSchedules(ctx, r.Now(), teamAtOnce, batch)
	for _, s := range waiting {
		f := runs.Firing{Schedule: s.ID, Due: s.Firings[0].Due, Next: s.NextAt, Waited: true, Times: 1}
		if r.begin(ctx, s, func() error { return r.start(ctx, s, f) }) {
			begun++
		}
	}
	return begun, err
}

// begin starts a run in the background, unless enough are being started. What could not
// be started is tried again later.
func (r *Runner) begin(ctx context.Context, s Schedule, start func() error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ofTeam := 0
	for _, team := range r.busy {
		if team == s.Team {
			ofTeam++
		}
	}
	if _, busy := r.busy[s.ID]; busy || ofTeam >= teamAtOnce || len(r.busy) >= atOnce {
		return false
	}
	if r.busy == nil {
		r.busy = map[ids.Schedule]ids.Team{}
	}
	r.busy[s.ID] = s.Team
	r.work.Go(func() {
		if err := panics.Catch(start); err != nil {
			r.retry(ctx, s, err)
		}
		r.mu.Lock()
		delete(r.busy, s.ID)
		r.mu.Unlock()
		select {
		case r.ended <- struct{}{}:
		default:
		}
	})
	return true
}

// retry has a schedule tried again after a pause, which grows. Meanwhile those that can
// start do.
func (r *Runner) retry(ctx context.Context, s Schedule, why error) {
	about := slog.String("schedule", string(s.ID))
	if _, theirs := unreachable(why); !theirs && !errors.Is(why, runs.ErrOverlap) {
		r.complain(ctx, "a schedule could not start its run; it is tried again", why, about)
	}
	err := r.Store.RetrySchedule(ctx, s, r.Now().Add(retryPause(s)))
	if err == nil || ctx.Err() != nil {
		return
	}
	r.complain(ctx, "cannot note when a schedule is tried again", err, about)
	t := time.NewTimer(look) // it is still due
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// retryPause is how long it takes until a schedule that could not start is tried again.
func retryPause(s Schedule) time.Duration { return min(maxPause, look<<min(s.Retries, 10)) }

// unreachable is a failure of hosts of the team's inputs or outputs that may pass, where
// err is one. It is the team's business, and is not logged.
func unreachable(err error) (*fault.Error, bool) {
	e, ok := errors.AsType[*fault.Error](err)
	return e, ok && e.Temporary
}

// fire starts the run of a schedule that is due, or says why there is none.
func (r *Runner) fire(ctx context.Context, s Schedule) error {
	now := r.Now()
	f := runs.Firing{Schedule: s.ID, Due: s.NextAt, Times: 1}
	times, err := s.times()
	if err != nil { // a time zone that this machine does not know any more
		return r.pause(ctx, s, f, fault.Invalid("its times cannot be read any more: %v", err))
	}
	f.Next = times.Next(s.NextAt)
	if late := now.Add(-grace); s.NextAt.Before(late) {
		f.Next, f.Times = times.Next(late), count(times, s.NextAt, late)
		if !s.CatchUp {
			return r.Store.NoteFiring(ctx, f, Missed, "no server was available at that time", mostWaiting, now)
		}
	}
	err = r.start(ctx, s, f)
	away, isAway := unreachable(err)
	switch {
	case isAway && !s.CatchUp && now.Add(retryPause(s)).After(s.NextAt.Add(grace)): // the next attempt would be too late
		return r.Store.NoteFiring(ctx, f, Missed, away.Message, mostWaiting, now)
	case errors.Is(err, runs.ErrOverlap) && s.Overlap == Queue:
		return r.Store.NoteFiring(ctx, f, Waiting, "the previous run is still going", mostWaiting, now)
	case errors.Is(err, runs.ErrOverlap):
		return r.Store.NoteFiring(ctx, f, Skipped, "the previous run was still going", mostWaiting, now)
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
// wrong with us, or with hosts that are away, comes back, and is tried again. While the team is suspended, or no
// worker that builds environments is there, its times pass by: they go on afterwards.
func (r *Runner) start(ctx context.Context, s Schedule, f runs.Firing) error {
	_, err := r.Runs.SubmitAutomatic(ctx, s.Team, s.Given.of(s.Workflow), runs.Automatic{
		Starter: runs.Starter{Type: runs.BySchedule, ID: string(s.ID), Name: s.CreatedByName}, For: s.CreatedBy, Firing: &f,
	})
	if err == nil || errors.Is(err, runs.ErrTaken) {
		return nil
	}
	if errors.Is(err, runs.ErrOverlap) {
		return err
	}
	if fault.Temporary(err) {
		return err
	}
	if e, ok := errors.AsType[*fault.Error](err); ok && (e.Code == runs.TeamSuspended || e.Code == offers.NoEnvironments || e.Code == offers.NoEngine) {
		return r.Store.NoteFiring(ctx, f, Skipped, e.Message, mostWaiting, r.Now())
	}
	return r.pause(ctx, s, f, err)
}

func (r *Runner) pause(ctx context.Context, s Schedule, f runs.Firing, why error) error {
	p := Pause{At: r.Now(), Code: string(fault.KindOf(why)), Message: why.Error()}
	if e, ok := errors.AsType[*fault.Error](why); ok {
		p.Message = e.Message
		if e.Code != "" {
			p.Code = e.Code
		}
	}
	l := mails.Message{
		ID: ids.NewMail(), Team: s.Team, Subject: "Your schedule is paused",
		Text: fmt.Sprintf("Your schedule of the workflow %s could not start the run due at %s. It won't start any more runs until someone resumes it.\n\nThe reason:\n%s\n\n%s/workflows/%s/schedules\n",
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
		r.Log.ErrorContext(ctx, what, append(about, panics.About(err)...)...)
	}
}
