package executors_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/millrace/millrace/cmd/millrace/executors"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/waittest"
)

// calls are all that can be asked of an executor, each with an error.
func calls(d *executors.Late) map[string]func(context.Context) error {
	var h executor.Handle
	return map[string]func(context.Context) error{
		"Capabilities": func(ctx context.Context) error { _, err := d.Capabilities(ctx); return err },
		"Prepare":      func(ctx context.Context) error { return d.Prepare(ctx, executor.Key{}) },
		"Submit":       func(ctx context.Context) error { _, err := d.Submit(ctx, executor.NoRun, executor.Spec{}); return err },
		"Refresh":      func(ctx context.Context) error { return d.Refresh(ctx) },
		"Snapshot":     func(ctx context.Context) error { _, err := d.Snapshot(ctx); return err },
		"Stop":         func(ctx context.Context) error { return d.Stop(ctx, executor.NoRun, h, 0) },
		"Logs":         func(ctx context.Context) error { _, err := d.Logs(ctx, h, 0); return err },
		"Release":      func(ctx context.Context) error { return d.Release(ctx, executor.NoRun, h) },
		"Renew": func(ctx context.Context) error {
			return d.Renew(ctx, executor.Renewal{Handle: h, Permit: executor.NoRun})
		},
		"Usage":  func(ctx context.Context) error { _, err := d.Usage(ctx, h); return err },
		"Freeze": func(ctx context.Context) error { _, err := d.Freeze(ctx); return err },
		"Evict":  func(ctx context.Context) error { return d.Evict(ctx, "a") },
		"Thaw":   func(ctx context.Context) error { return d.Thaw(ctx) },
		"Marks":  func(ctx context.Context) error { _, err := d.Marks(ctx, h, 0); return err },
	}
}

// Whoever asks an executor that begins waits for it, and no longer than they want to; one
// that cannot begin says why to everybody.
func TestAnExecutorThatBeginsIsWaitedFor(t *testing.T) {
	t.Parallel()
	begin, wrong := make(chan struct{}), errors.New("no cluster")
	d := executors.Open(t.Context(), func(context.Context) (executors.Driver, error) {
		<-begin
		return executors.Driver{}, wrong
	})
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, call := range calls(d) {
		if err := call(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, while it begins: %v", name, err)
		}
	}
	select {
	case <-d.Ready():
		t.Error("it is ready before it has begun")
	case _, more := <-d.Watch(gone):
		if more {
			t.Error("there is something to see before it has begun")
		}
	}
	hints := d.Watch(t.Context())
	close(begin)
	<-d.Ready()
	for name, call := range calls(d) {
		if err := call(t.Context()); !errors.Is(err, wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, more := <-hints; more {
		t.Error("there is something to see of one that could not begin")
	}
	if err := d.Close(); !errors.Is(err, wrong) {
		t.Errorf("its end: %v", err)
	}
}

// whole makes a driver that can do all of the dummy.
func whole(d *dummy.Driver) executors.Driver {
	return executors.Driver{Driver: d, Watcher: d, Preparer: preparer{}, Closer: d}
}

type preparer struct{}

func (preparer) Prepare(context.Context, executor.Key) error { return nil }

func TestAnExecutorThatHasBegunIsAskedItself(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	d := executors.Open(t.Context(), func(context.Context) (executors.Driver, error) {
		driver, err := dummy.New(folder, time.Now)
		return whole(driver), err
	})
	hints := d.Watch(t.Context()) // from before it has begun
	s := executor.Spec{Key: executor.Key{Run: "run_1", Node: "n"}, Fence: "f", Command: "# dummy: print=hello exit=3", Dir: folder}
	var h executor.Handle
	if !waittest.Until(func() bool { // what ends before anybody watches is not heard of
		s.Key.Attempt++
		var err error
		if h, err = d.Submit(t.Context(), executor.NoRun, s); err != nil {
			t.Fatal(err)
		}
		select {
		case seen := <-hints:
			return seen.Exit != nil && seen.Exit.Code == 3
		default:
			return false
		}
	}) {
		t.Fatal("nobody is told of an end")
	}
	r, err := d.Logs(t.Context(), h, 1)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "ello\n" {
		t.Errorf("%q, %v", text, err)
	}
	if all, err := d.Snapshot(t.Context()); err != nil || len(all) != s.Key.Attempt {
		t.Errorf("%+v, %v", all, err)
	}
	if err := errors.Join(d.Stop(t.Context(), executor.NoRun, h, 0), d.Release(t.Context(), executor.NoRun, h), d.Close()); err != nil {
		t.Error(err)
	}
	for range hints { // they end with it
	}
}

// A server that is told to stop while its executor begins stops without an error.
func TestAnExecutorThatIsStoppedBeforeItHasBegunIsNoFailure(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	d := executors.Open(ctx, func(ctx context.Context) (executors.Driver, error) {
		<-ctx.Done()
		return executors.Driver{}, fmt.Errorf("try the sandbox: %w", ctx.Err())
	})
	stop()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
