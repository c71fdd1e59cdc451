package executors

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

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
	h, err := d.Submit(ctx, spec)
	if err != nil {
		return err
	}
	return errors.Join(awaitProbe(ctx, updates), d.Stop(context.WithoutCancel(ctx), h, 0))
}

func awaitProbe(ctx context.Context, updates <-chan executor.Status) error {
	last := "nothing was heard of it"
	for {
		select {
		case s := <-updates:
			switch {
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
