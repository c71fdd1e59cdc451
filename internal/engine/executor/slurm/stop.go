package slurm

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

const (
	stopAgain = 5 * time.Second  // Slurm is told again
	stopHard  = 20 * time.Second // after the grace, Slurm ends the job itself
)

// Stop asks a job to end. What was not handed to Slurm yet has ended at once.
func (d *Driver) Stop(_ context.Context, p executor.Permit, h executor.Handle, grace time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.known(h)
	if a == nil || a.phase.Final() {
		return nil
	}
	if err := a.allow(p); err != nil {
		return err
	}
	if a.stopAt.IsZero() {
		a.stopAt = d.config.Now()
	}
	if c := &a.control; !c.Stop || grace < c.Grace {
		c.Stop, c.Grace, a.stopSent = true, grace, time.Time{}
	}
	err := a.folder.WriteControl(a.control)
	if i := slices.Index(d.waiting, a); i >= 0 && !a.folder.Claimed() && a.tries == 0 {
		d.waiting = slices.Delete(d.waiting, i, i+1)
		a.inQueue = false
		d.conclude(a, executor.Ended, executor.Cancelled, "")
		return err
	}
	if a.phase == executor.Running {
		d.move(a, executor.Running, executor.Stopping, a.detail)
	}
	if !d.closed {
		signalOn(d.wake)
	}
	return err
}

// sendStops has Slurm tell jobs that they are to end. A job also reads it in its
// folder; a signal is sooner there.
func (d *Driver) sendStops(ctx context.Context, list []*attempt) {
	for _, a := range list {
		for _, options := range d.stopsDue(a) {
			if err := d.client.cancel(ctx, a.name, options...); err != nil && ctx.Err() == nil {
				d.config.Log.WarnContext(ctx, "cannot stop a job", slog.String("job", a.name), slog.Any("error", err))
			}
		}
	}
}

// stopsDue is what scancel is to be told about an attempt now.
func (d *Driver) stopsDue(a *attempt) [][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.config.Now()
	if a.stopAt.IsZero() || a.phase.Final() || a.inQueue || now.Sub(a.stopSent) < stopAgain {
		return nil
	}
	a.stopSent = now
	if now.Sub(a.stopAt) > a.control.Grace+stopHard {
		return [][]string{nil}
	}
	return [][]string{{"--state=PENDING"}, {"--signal=USR1", "--batch", "--state=RUNNING"}}
}

// cancelOrphans ends jobs of this installation whose attempts were released. An
// attempt has its folder before it has a job, on whichever server.
func (d *Driver) cancelOrphans(ctx context.Context, all map[string][]slurmJob) {
	names := d.unknown(all)
	if len(names) == 0 || d.scan() != nil {
		return
	}
	for _, name := range d.unknown(all) {
		d.config.Log.InfoContext(ctx, "ending a job that nobody wants", slog.String("job", name))
		_ = d.client.cancel(ctx, name) // the next look finds it again
	}
}

// unknown are the names of jobs that live and belong to no attempt.
func (d *Driver) unknown(all map[string][]slurmJob) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ours := map[string]bool{}
	for _, a := range d.attempts {
		ours[a.name] = true
	}
	for name, jobs := range all {
		if j, ok := best(jobs); ok && !ours[name] && !j.ended() && j.state != "COMPLETING" {
			names = append(names, name)
		}
	}
	return names
}
