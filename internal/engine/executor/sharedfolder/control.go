package sharedfolder

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/shim/rawfile"
)

// The servers' own files in an attempt's folder.
const (
	outcomeFile = "/outcome" // sealed: it says what is billed
	blockedFile = "/stuck"   // made when the cluster began to say that it cannot start the job
)

// readOthers takes in what other servers want of an attempt, and what they have made of
// it. The lock of the attempt is held.
func (r *Records) readOthers(ctx context.Context, a *attempt) {
	if written, err := a.readControl(); err == nil {
		a.control = merge(a.control, written)
		a.kept.Stopping, a.kept.Grace = a.control.Stop, a.control.Grace
	}
	o, err := r.readOutcome(a)
	switch {
	case err == nil:
		a.decide(o)
	case !errors.Is(err, fs.ErrNotExist):
		r.config.Log.WarnContext(ctx, "cannot read how an attempt ended, and asks the cluster again", slog.String("attempt", a.kept.Job.ID), slog.Any("error", err))
	}
}

func (a *attempt) decide(o reconciler.Outcome) { a.outcome, a.kept.Decided = &o, true }

// Stop has the shim of an attempt end its command.
func (r *Records) Stop(_ context.Context, ref reconciler.Ref, grace time.Duration) error {
	a := r.find(ref)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outcome != nil || a.exit != nil {
		return nil
	}
	err := a.changeControl(ref.RunFence, func(c *job.Control) {
		if !c.Stop || grace < c.Grace {
			c.Stop, c.Grace = true, grace
		}
	})
	a.kept.Stopping, a.kept.Grace = a.control.Stop, a.control.Grace
	return err
}

// Renew tells jobs that they are still wanted, often enough for each to hear it several
// times before it gives up.
func (r *Records) Renew(_ context.Context, list []reconciler.Ref) (err error) {
	for _, ref := range list {
		if a := r.find(ref); a != nil {
			err = errors.Join(err, a.renew(ref.RunFence, r.config.Now()))
		}
	}
	return err
}

// renew tells a job at once that its run has a later owner.
func (a *attempt) renew(runFence int64, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outcome != nil || a.away == 0 || now.Sub(a.renewed) < a.away/6 && runFence <= a.control.RunFence {
		return nil
	}
	if a.allow(runFence) != nil {
		return nil // by whoever had the run
	}
	err := a.changeControl(runFence, func(c *job.Control) {
		c.Renewals++
		c.Until = now.Add(a.away)
	})
	if err == nil {
		a.renewed = now
	}
	return err
}

// Allow is an error where a later owner of the run has given orders about an attempt.
func (r *Records) Allow(_ context.Context, ref reconciler.Ref) error {
	a := r.find(ref)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.allow(ref.RunFence)
}

// allow takes in what other servers want of a job, and checks an order against that. The
// lock of the attempt is held.
func (a *attempt) allow(runFence int64) error {
	if !a.local {
		if written, err := a.readControl(); err == nil {
			a.control = merge(a.control, written)
		}
	}
	last, err := executor.Allow(executor.Unleased(runFence), a.control.RunFence)
	if last > a.control.RunFence {
		err = errors.Join(err, a.setRunFence(last))
	}
	return err
}

func (a *attempt) setRunFence(fence int64) (err error) {
	a.control.RunFence = fence
	a.control.Seal, err = a.sealer.seal(a.fenceName(), fence)
	return err
}

// readControl reads what servers want of a job. A fence that none of them has written is
// left out: a task may have written to its folder.
func (a *attempt) readControl() (job.Control, error) {
	c, err := a.folder.Control()
	var fence int64
	if a.sealer.open(a.fenceName(), c.Seal, &fence) != nil || fence != c.RunFence {
		c.RunFence, c.Seal = 0, nil
	}
	return c, err
}

// fenceName is the name under which the fence of the run is sealed.
func (a *attempt) fenceName() string { return "run fence of " + a.kept.Job.Fence }

// changeControl changes what servers want of a job, as whoever had its run under runFence.
// What another server has written is kept. The lock of the attempt is held.
func (a *attempt) changeControl(runFence int64, change func(*job.Control)) error {
	if err := a.allow(runFence); err != nil {
		return err
	}
	change(&a.control)
	if a.local {
		return a.folder.OverwriteControl(a.control)
	}
	return a.folder.WriteControl(a.control)
}

// merge joins what two servers want of a job. What the later owner of the run wants
// counts. Of one owner a stop stays, with the shorter grace.
func merge(own, written job.Control) job.Control {
	switch {
	case own.RunFence < written.RunFence:
		return written
	case own.RunFence > written.RunFence && written.RunFence != 0: // else it is of an earlier release
		return own
	}
	both := written
	both.RunFence, both.Seal = own.RunFence, own.Seal
	both.Renewals = max(own.Renewals, written.Renewals)
	if own.Until.After(written.Until) {
		both.Until = own.Until
	}
	if own.Stop {
		both.Stop, both.Grace = true, own.Grace
		if written.Stop {
			both.Grace = min(own.Grace, written.Grace)
		}
	}
	if len(own.Secrets) > 0 {
		both.Secrets = own.Secrets
	}
	return both
}

// Block notes since when an attempt cannot start, also for the next server.
func (r *Records) Block(_ context.Context, ref reconciler.Ref, blocked bool) error {
	a := r.find(ref)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	path := string(a.folder) + blockedFile
	if !blocked {
		a.kept.BlockedAt = time.Time{}
		return ignore(os.Remove(path), fs.ErrNotExist)
	}
	a.kept.BlockedAt = r.config.Now()
	return ignore(rawfile.Write(path, unix.O_CREAT|unix.O_EXCL, nil), fs.ErrExist)
}

func blockedAt(f job.Folder) time.Time {
	info, err := os.Stat(string(f) + blockedFile)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Conclude keeps the outcome of an attempt, unless there is one. With an attempt that
// has not begun no job begins afterwards.
func (r *Records) Conclude(ctx context.Context, ref reconciler.Ref, o reconciler.Outcome) error {
	a := r.find(ref)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outcome != nil {
		return nil
	}
	if a.kept.BeganAt.IsZero() && !o.Recorded {
		ours, err := a.folder.Withdraw()
		if err != nil {
			return err
		}
		if !ours {
			a.kept.BeganAt = r.config.Now()
			return fault.Conflict("a job has begun with the attempt")
		}
	}
	if err := r.writeOutcome(a, o); err != nil {
		return err
	}
	if a.local {
		a.decide(o)
		return nil
	}
	r.readOthers(ctx, a)
	return nil
}

func (r *Records) readOutcome(a *attempt) (o reconciler.Outcome, err error) {
	sealed, err := rawfile.ReadRegular(string(a.folder) + outcomeFile)
	if err != nil {
		return o, err
	}
	return o, r.sealer.open(outcomeName(a), sealed, &o)
}

// writeOutcome writes an outcome where there is none: the first server that decides
// wins. What no server has written is replaced.
func (r *Records) writeOutcome(a *attempt, o reconciler.Outcome) error {
	sealed, err := r.sealer.seal(outcomeName(a), o)
	if err != nil {
		return err
	}
	// Under a new name: a task could have put a link to a file of ours there.
	file, err := os.CreateTemp(string(a.folder), ".outcome.*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(sealed)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	path := string(a.folder) + outcomeFile
	if a.local {
		return os.Rename(file.Name(), path)
	}
	err = os.Link(file.Name(), path)
	if errors.Is(err, fs.ErrExist) {
		if _, err = r.readOutcome(a); err != nil {
			err = os.Rename(file.Name(), path)
		}
	}
	return err
}

// ForgetEnd has an attempt that has begun count as one whose shim is silent, whatever was
// said of its end.
func ForgetEnd(f job.Folder, fence string) error {
	err := os.Remove(string(f) + outcomeFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.WriteState(job.State{Fence: fence}))
}

// outcomeName is of one attempt alone: nobody can put in the outcome of another.
func outcomeName(a *attempt) string { return "outcome " + a.kept.Job.Fence }

func ignore(err, passing error) error {
	if errors.Is(err, passing) {
		return nil
	}
	return err
}
