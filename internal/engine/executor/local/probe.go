package local

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
)

// probe runs a command that does nothing, the way every other will be. Its name
// is new each time: a server that was killed may have left another's behind, and
// would be told of its end, not of ours.
func (d *Driver) probe(ctx context.Context) error {
	if !d.box.isSandbox() {
		return nil
	}
	s := executor.Spec{
		Key:   executor.Key{Run: ids.Run("try-" + rand.Text())},
		Fence: "try", Interpreter: "sh", Command: "exit 42", Timeout: 20 * time.Second,
	}
	s.Dir = d.dir(s.Key.Folder())
	if err := os.MkdirAll(s.Work(), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	changes := d.Watch(ctx)
	h, err := d.submit(s)
	if err != nil {
		return errors.Join(err, os.RemoveAll(s.Dir))
	}
	for seen := range changes {
		if seen.Handle == h && seen.Phase.Final() {
			return errors.Join(probeResult(seen), d.Release(ctx, h))
		}
	}
	return errors.Join(ctx.Err(), d.Stop(context.WithoutCancel(ctx), h, 0))
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

// probeUntilItWorks lets a machine that could not isolate a task serve when it
// can: what was in the way may have been a moment's load, or a setting of the
// kernel that somebody mends.
func (d *Driver) probeUntilItWorks() {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		select {
		case <-d.ctx.Done():
			return
		case <-time.After(pause):
		}
		err := d.probe(d.ctx)
		d.setProblem(err)
		if err == nil {
			d.log.Info("tasks can be isolated now")
			return
		}
	}
}

func (d *Driver) setProblem(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problem = ""
	if err != nil {
		d.problem = "tasks cannot be isolated on this machine (" + err.Error() +
			"); install bubblewrap and allow it user namespaces, or ask for --sandbox none and trust every task"
	}
}

func (d *Driver) whyNothingStarts() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.problem
}
