package local

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// await follows a shim that this driver started.
func (d *Driver) await(a *attempt, process *os.Process) {
	state, err := process.Wait()
	if err == nil && state.ExitCode() == shim.Doubled {
		// An earlier server's shim has the attempt.
		a.folder.Await()
	}
	d.settle(a)
}

// adopted follows a shim that an earlier server started.
func (d *Driver) adopted(a *attempt) {
	a.folder.Await()
	d.settle(a)
}

// settle decides how an attempt ended whose shim is gone, and lets the next one
// in.
func (d *Driver) settle(a *attempt) {
	exit, word := d.read(a)
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return // the next driver on the folder decides
	}
	if word.Phase == executor.Gone {
		// A shim that was killed took a sandbox with it, but not what ran
		// without one.
		killGroup(a.group)
	}
	if exit != nil && a.group.Held() && slices.Contains(exit.NotEnforced, "cpu") {
		d.groups.forget(a.slot) // somebody has removed them
	}
	d.vacate(a)
	d.conclude(a, exit, word)
	d.mu.Unlock()
	d.fill()
}

// conclude gives an attempt its last phase. The lock is held.
func (d *Driver) conclude(a *attempt, exit *executor.Exit, word executor.Word) {
	phase, reason := executor.Verdict(a.spec.Fence, exit, word)
	if _, asked := a.folder.StopAsked(); asked && reason == executor.NeverStarted {
		if err := d.cancelled(a); err == nil {
			return
		}
	}
	if phase == executor.Ended && exit != nil {
		a.exit, a.detail = exit, whyNotStarted(a.spec, exit.StartFailed)
	}
	d.move(a, phase, reason)
}

// whyNotStarted puts the one thing that authors get wrong into their words.
func whyNotStarted(s executor.Spec, said string) string {
	if !strings.Contains(said, "execvp "+s.Interpreter+":") {
		return said
	}
	where := "this machine"
	if s.Root != "" {
		where = "the image"
	}
	return fmt.Sprintf("%s has no %s that can be run: set `interpreter` to a program that it has, such as sh, or choose an image that has it", where, s.Interpreter)
}

// read looks at what the shim left.
func (d *Driver) read(a *attempt) (*executor.Exit, executor.Word) {
	exit, err := a.folder.Exit()
	if err == nil {
		return exit, executor.Word{}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		d.log.Error("cannot read an exit record", slog.String("attempt", a.spec.Key.Folder()), slog.Any("error", err))
	}
	if a.folder.Withdraw() {
		return nil, executor.Word{Phase: executor.Gone, Reason: executor.NeverStarted}
	}
	return nil, executor.Word{Phase: executor.Gone, Reason: executor.Lost}
}

// Roots lists the images that attempts in a folder see, or are to see: those
// that were submitted and not released, by whichever server.
func Roots(folder string) (roots []string, err error) {
	missing := submitted(folder, func(s executor.Spec, unreadable error) {
		err = errors.Join(err, unreadable)
		if s.Root != "" {
			roots = append(roots, s.Root)
		}
	})
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		err = missing
	}
	return roots, err
}

// submitted tells of what was submitted and not released.
func submitted(folder string, tell func(s executor.Spec, unreadable error)) error {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		if !entry.IsDir() || entry.Name()[0] == '.' {
			continue
		}
		spec, err := readSpec(folder + "/" + entry.Name())
		if errors.Is(err, fs.ErrNotExist) || err == nil && spec.Key.Folder() != entry.Name() {
			continue // prepared, and never submitted
		}
		tell(spec, err)
	}
	return err
}

// adopt takes over what lies in the folder. The attempts that still run are
// returned, to be followed.
func (d *Driver) adopt() (running []*attempt, err error) {
	err = submitted(d.folder, func(spec executor.Spec, unreadable error) {
		if unreadable != nil {
			d.log.Error("cannot read what was submitted", slog.Any("error", unreadable))
			return
		}
		if a := d.takeOver(spec); a.placed {
			running = append(running, a)
		}
	})
	return running, err
}

func (d *Driver) takeOver(s executor.Spec) *attempt {
	s.Dir = d.dir(s.Key)
	a := d.attemptOf(s)
	d.attempts[s.Key] = a
	// In this order: a shim that has not begun by now never will, and one that
	// has writes its record before it lets go.
	a.folder.Withdraw()
	held := a.folder.Held()
	exit, word := d.read(a)
	if !held || exit != nil {
		d.conclude(a, exit, word)
		return a
	}
	a.phase, a.reason = executor.Running, executor.Executing
	if _, asked := a.folder.StopAsked(); asked {
		a.reason = executor.Stopping
	}
	if launch, err := a.folder.Launch(); err == nil {
		a.slot, a.group = launch.Slot, launch.Cgroup
	}
	d.occupy(a)
	return a
}
