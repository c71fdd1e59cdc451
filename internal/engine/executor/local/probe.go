package local

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
)

// try runs a command that only shows its limits, the way every other will be run, and
// returns what it says. Its name is new each time: a server that was killed may have left
// another's behind, and would be told of its end, not of ours.
func (d *Driver) try(ctx context.Context) (limits string, err error) {
	s := executor.Spec{
		Key:   executor.Key{Run: ids.Run(tryPrefix + rand.Text())},
		Fence: "try", Interpreter: "sh", Command: "cat /proc/self/limits; exit 42", Timeout: 20 * time.Second,
		DiskBytes: 1 << 30, MemoryBytes: 1 << 30,
	}
	s.Dir = d.cluster.dir(s.Key.Folder())
	if err := os.MkdirAll(s.Work(), 0o700); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	changes := d.Watch(ctx)
	h, err := d.Driver.Submit(ctx, executor.NoRun, s)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(s.Dir))
	}
	for seen := range changes {
		if seen.Handle == h && seen.Phase.Final() {
			limits, err = d.readLog(ctx, h)
			return limits, errors.Join(probeResult(seen), err, d.Release(ctx, executor.NoRun, h))
		}
	}
	return "", errors.Join(ctx.Err(), d.Stop(context.WithoutCancel(ctx), executor.NoRun, h, 0))
}

// tryPrefix begins the names of tries of the sandbox.
const tryPrefix = "try-"

func isTry(k executor.Key) bool { return strings.HasPrefix(string(k.Run), tryPrefix) }

func (d *Driver) readLog(ctx context.Context, h executor.Handle) (string, error) {
	log, err := d.Logs(ctx, h, 0)
	if err != nil {
		return "", err
	}
	defer log.Close()
	text, err := io.ReadAll(io.LimitReader(log, 64<<10))
	return string(text), err
}

func probeResult(s executor.Status) error {
	switch {
	case s.Exit != nil && s.Exit.StartFailed != "":
		return errors.New(s.Exit.StartFailed)
	case s.Exit == nil || s.Exit.Code != 42:
		return errors.New("a command that does nothing did not come back from the sandbox")
	}
	return nil
}

// unlimited names the resources for which a process has no limit, as the kernel
// lists them in /proc. Memory has one where no group holds it.
func unlimited(limits string, ofMemory bool) (names []string) {
	for _, l := range []struct {
		title, name string
		wanted      bool
	}{{"Max file size", "file size", true}, {"Max data size", "memory of a process", ofMemory}, {"Max processes", "processes", true}} {
		_, rest, found := strings.Cut(limits, l.title)
		if hard := strings.Fields(rest); l.wanted && (!found || len(hard) < 2 || hard[1] == "unlimited") {
			names = append(names, l.name)
		}
	}
	return names
}

// problemOf says why nothing can start; it is empty if something can.
func problemOf(err error) string {
	if err == nil {
		return ""
	}
	return "tasks cannot be isolated on this machine (" + err.Error() +
		"); install bubblewrap and allow it user namespaces, or ask for --sandbox none and trust every task"
}

// probe tries the sandbox, and notes which limits do not hold in it.
func (d *Driver) probe(ctx context.Context) error {
	if !d.cluster.box.isSandbox() {
		return nil
	}
	limits, err := d.try(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unlimited = unlimited(limits, slices.Contains(d.cluster.groups.notEnforced(), "memory"))
	return err
}

// probeUntilItWorks lets a machine that could not isolate a task serve when it can: what
// was in the way may have been a moment's load, or a setting of the kernel that somebody
// mends.
func (d *Driver) probeUntilItWorks() {
	ctx := d.cluster.ctx
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		err := d.probe(ctx)
		d.setProblem(err)
		if err == nil {
			d.cluster.log.Info("tasks can be isolated now")
			return
		}
	}
}

func (d *Driver) setProblem(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problem = problemOf(err)
}

func (d *Driver) whyNothingStarts() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.problem
}
