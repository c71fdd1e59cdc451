package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// warnAfter is how long a shim may take to answer before that is logged.
const warnAfter = 5 * time.Second

// shimFolder is where the shim of an attempts' folder keeps what is its own.
const shimFolder = ".shim"

// send sends to the shim, if there is one. Without one nothing runs that an
// order could be about.
func (d *Driver) send(o shim.Order) error {
	d.linkMu.Lock()
	defer d.linkMu.Unlock()
	if d.link == nil {
		return nil
	}
	return d.link.Send(o)
}

// connect connects to the shim, unless that is done. Linking is held.
func (d *Driver) connect() error {
	if d.link != nil {
		return nil
	}
	defer time.AfterFunc(warnAfter, func() {
		d.log.Warn("the shim does not answer, so nothing is started or stopped; is it paused, or serving another server?")
	}).Stop()
	link, records, err := shim.Reach(d.ctx, d.dir(shimFolder), d.shim)
	if err != nil {
		return fmt.Errorf("cannot start the shim: %w", err)
	}
	d.link, d.disconnected = link, make(chan struct{})
	d.mu.Lock()
	d.outdated = !link.Current()
	d.mu.Unlock()
	d.reconcile(records)
	go d.listen(link, d.disconnected)
	return nil
}

// replaceOutdated puts a shim of this build in the place of one that is outdated, whose
// attempts have all ended. Linking is held.
func (d *Driver) replaceOutdated() error {
	if d.link.Current() {
		return nil
	}
	d.disconnect(true)
	d.link = nil
	return d.connect()
}

// disconnect closes the connection to the shim. One that has nothing to do goes at once, and out
// of the groups that are to be removed.
func (d *Driver) disconnect(idle bool) {
	if idle && d.link.Send(shim.Order{Leave: true}) == nil {
		select {
		case <-d.disconnected:
		case <-time.After(time.Second):
		}
	}
	d.link.Close()
}

// listen handles the reports of the shim, and connects again when it is gone.
func (d *Driver) listen(link *shim.Link, unheard chan struct{}) {
	for {
		r, err := link.Next()
		if err != nil {
			break
		}
		d.handleReport(r)
	}
	close(unheard)
	if d.ctx.Err() == nil {
		d.reconnect(link)
		d.startQueued()
	}
}

func (d *Driver) reconnect(lost *shim.Link) {
	d.linkMu.Lock()
	defer d.linkMu.Unlock()
	if d.link != lost {
		return // we have left it
	}
	d.link = nil
	d.log.Error("lost the shim", slog.String("stderr", shim.LastStderr(d.dir(shimFolder))))
	for wait := 10 * time.Millisecond; d.ctx.Err() == nil; wait = min(2*wait, 10*time.Second) {
		err := d.connect()
		if err == nil || d.ctx.Err() != nil {
			break
		}
		d.log.Error("cannot reach a shim", slog.Any("error", err))
		select {
		case <-time.After(wait):
		case <-d.ctx.Done():
		}
	}
}

func (d *Driver) handleReport(r shim.Report) {
	d.mu.Lock()
	switch {
	case d.closed: // the next driver on the folder decides
	case r.Sample != nil:
		if a := d.attempts[r.Sample.ID]; a != nil {
			a.usage = r.Sample.Usage
		}
	case r.Record != nil:
		d.applyRecord(r.Record.ID, r.Record)
	case r.Released != "":
		d.noteReleased(r.Released)
	case r.Frozen != nil:
		d.noteFrozen(r.Frozen.Sizes)
	}
	d.mu.Unlock()
	d.startQueued()
}

// noteReleased ends the waiting for the shim to forget an attempt. The lock is held.
func (d *Driver) noteReleased(id string) {
	if forgotten := d.releasing[id]; forgotten != nil {
		delete(d.releasing, id)
		close(forgotten)
	}
}

// applyRecord decides how an attempt ended, and frees its capacity. Of one that the
// shim does not know there is no record. The lock is held.
func (d *Driver) applyRecord(id string, r *shim.Record) {
	a := d.attempts[id]
	if a == nil || !a.sentToShim || a.phase.Final() || r != nil && r.Exit == nil && !r.Lost {
		return
	}
	var exit *executor.Exit
	known := executor.DriverStatus{Phase: executor.Gone, Reason: executor.NeverStarted}
	switch {
	case r != nil && r.Lost:
		known.Reason = executor.Lost
	case r != nil:
		exit, known = r.Exit, executor.DriverStatus{}
		exit.Evicted = exit.Evicted || a.evicted && exit.Stopped // an earlier shim says only that it was stopped
		off := d.clockOffset()
		exit.Start, exit.End = exit.Start.Add(-off), exit.End.Add(-off)
		if a.group.Exists() && slices.Contains(exit.NotEnforced, "cpu") {
			d.groups.forget(a.slot) // somebody has removed them
		}
	}
	d.free(a)
	phase, reason := executor.Outcome(a.spec.Fence, exit, known)
	if phase == executor.Ended && exit != nil {
		a.exit, a.detail = exit, whyNotStarted(a.spec, exit)
	}
	d.setPhase(a, phase, reason)
}

// whyNotStarted puts the one thing that authors get wrong into their words.
func whyNotStarted(s executor.Spec, exit *executor.Exit) string {
	if !exit.NoProgram {
		return exit.StartFailed
	}
	return noProgram(s.Root, s.Interpreter)
}

// Roots lists the images and environments that attempts in a folder see,
// whichever server started them.
func Roots(folder string) (roots []string, err error) {
	records, err := shim.Records(filepath.Join(folder, shimFolder))
	for _, r := range records {
		var known metadata
		err = errors.Join(err, json.Unmarshal(r.Metadata, &known))
		for _, root := range []string{known.Spec.Root, known.Spec.Environment} {
			if root != "" {
				roots = append(roots, root)
			}
		}
	}
	return roots, err
}

// sparePrefix begins the names of empty folders that servers before this one
// kept for attempts to come.
const sparePrefix = ".spare-"

// ofFileSystem is a folder that file systems have at their top, for which the
// folder of attempts may be one of its own.
const ofFileSystem = "lost+found"

// adopt takes over what an earlier server left in the folder.
func (d *Driver) adopt() error {
	if _, err := os.Stat(d.dir(shimFolder)); err == nil {
		d.linkMu.Lock()
		defer d.linkMu.Unlock()
		if err := d.connect(); err != nil {
			return err
		}
	}
	return d.removeUnsubmitted()
}

// removeUnsubmitted removes what was prepared and never submitted, which is of no use
// to anybody.
func (d *Driver) removeUnsubmitted() error {
	entries, err := os.ReadDir(d.folder)
	for _, entry := range entries {
		name := entry.Name()
		if spare := strings.HasPrefix(name, sparePrefix); entry.IsDir() && (name[0] != '.' || spare) && name != ofFileSystem && !d.submitted(name) {
			err = errors.Join(err, folder.RemoveAll(d.dir(name)))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *Driver) byID(id string) *attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attempts[id]
}

// submitted reports whether the shim has been told of an attempt.
func (d *Driver) submitted(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attempts[id] != nil || d.unreadable[id]
}

// reconcile compares what we know with all that the shim does.
func (d *Driver) reconcile(records []shim.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := map[string]*shim.Record{}
	for i, r := range records {
		known[r.ID] = &records[i]
		if d.attempts[r.ID] == nil {
			d.adoptAttempt(r)
		}
	}
	for id := range d.attempts {
		d.applyRecord(id, known[id])
	}
}

// adoptAttempt makes an attempt of an earlier server ours. The lock is held.
func (d *Driver) adoptAttempt(r shim.Record) {
	var m metadata
	if err := json.Unmarshal(r.Metadata, &m); err != nil || m.Spec.Key.Folder() != r.ID {
		d.log.Error("cannot read what an earlier server submitted", slog.String("attempt", r.ID), slog.Any("error", err))
		d.unreadable[r.ID] = r.Exit == nil && !r.Lost // it may be at work in its folder
		return
	}
	m.Spec.Dir = d.dir(r.ID)
	a := d.attemptOf(m.Spec)
	a.sentToShim, a.group, a.last = true, r.Group, r.RunFence
	a.phase, a.reason = executor.Running, executor.Executing
	if r.Stopping {
		a.reason = executor.Stopping
	}
	d.attempts[r.ID] = a
	if r.Exit == nil && !r.Lost { // the slot of one that has ended may be another's
		s := m.Spec
		a.slot, a.share = m.Slot, share{Key: s.Key, VCPU: s.VCPU, Memory: s.MemoryBytes, SharedGPU: s.SharedGPU, Devices: m.Devices}
		a.allocated = true
		d.slots[a.slot] = true
		d.room.occupy(a.share)
	}
}
