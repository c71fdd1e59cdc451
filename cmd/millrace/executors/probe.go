package executors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/slurm"
)

// TryAll has each of a server's executors run a task that does nothing, and says
// of each what is wrong. They are tried beside each other, so that one which does
// not answer takes no time from the next.
func TryAll(ctx context.Context, list []Named, sandbox string) []error {
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, x := range list {
		all.Go(func() { errs[i] = x.try(ctx, sandbox) })
	}
	all.Wait()
	return errs
}

func (x Named) try(ctx context.Context, sandbox string) (err error) {
	if x.Kind == "kubernetes" {
		return errors.Join(x.Kubernetes.Check(), x.Kubernetes.Doctor(ctx, x.Capacity))
	}
	parent := "" // the system's folder for what goes soon
	if x.Kind == "slurm" {
		parent = x.Slurm.SlurmFolder
		if err := x.Slurm.Check(); err != nil {
			return err
		}
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return err
		}
	}
	folder, err := os.MkdirTemp(parent, "millrace-doctor-") // a server must not take the task for its own
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	log := slog.New(slog.DiscardHandler)
	if x.Kind == "slurm" {
		c := x.Slurm.Config(make([]byte, 32), x.Capacity, log)
		c.Folder = folder
		d, err := slurm.New(ctx, c)
		if err != nil {
			return err
		}
		defer d.Close()
		return Probe(ctx, Driver{Driver: d, Watcher: d, Preparer: d}, folder)
	}
	d, err := local.New(ctx, local.Config{Folder: folder, Log: log, Now: time.Now, Sandbox: local.Sandbox(sandbox), VCPU: 1, MemoryBytes: 1 << 30})
	if err != nil {
		return err
	}
	defer d.Close()
	return Probe(ctx, Driver{Driver: d, Watcher: d, Preparer: d}, folder)
}

// Probe has an executor run a task that does nothing, in a folder for nothing
// else, and says what is wrong.
func Probe(ctx context.Context, d Driver, folder string) error {
	if caps, err := d.Capabilities(ctx); err != nil || !caps.Ready {
		return errors.Join(err, errors.New(caps.Problem))
	}
	spec := executor.Spec{
		Key: executor.Key{Run: "doctor", Node: "probe", Attempt: 1}, Fence: "probe", Interpreter: "sh", Command: "exit 42",
		VCPU: 1, MemoryBytes: 256 << 20, Grace: time.Second, Timeout: time.Minute,
	}
	spec.Dir = filepath.Join(folder, spec.Key.Folder())
	if err := d.Prepare(ctx, spec.Key); err != nil {
		return err
	}
	updates := d.Watch(ctx)
	h, err := d.Submit(ctx, executor.NoRun, spec)
	if err != nil {
		return err
	}
	err = awaitProbe(ctx, updates)
	after := context.WithoutCancel(ctx)
	if err == nil {
		return d.Release(after, executor.NoRun, h)
	}
	return errors.Join(err, d.Stop(after, executor.NoRun, h, 0))
}

func awaitProbe(ctx context.Context, updates <-chan executor.Status) error {
	last := "nothing was heard of it"
	for {
		select {
		case s, more := <-updates:
			switch {
			case !more: // the driver has hung up, and ctx says why
				updates = nil
				continue
			case s.Exit != nil && s.Exit.Code == 42:
				return nil
			case s.Phase.Final():
				return fmt.Errorf("a task that does nothing ended as %s: %s", s.Reason, s.Detail)
			}
			last = "it is " + strings.TrimSuffix(string(s.Reason)+", "+s.Detail, ", ")
		case <-ctx.Done():
			return fmt.Errorf("a task that does nothing has not ended yet: %s", last)
		}
	}
}
