package environments

import (
	"context"
	"errors"
	"time"
)

// Builds give way to everything else that needs the disk: they begin where there is
// enough of it, and end when there is nearly none. They can be done again.

const (
	lookAtDisk = 250 * time.Millisecond
	// waitForDisk is less than whoever waits for a build does: that there is no
	// space is not the author's failure.
	waitForDisk = 10 * time.Minute
)

// errNoSpace is ours: the run that needs the environment goes on later.
var errNoSpace = errors.New("the server's disk is nearly full: no environment is built")

// awaitSpace waits until a build may take more of the disk.
func (b *build) awaitSpace(ctx context.Context) error {
	if b.store.Disk == nil || !b.store.Disk.Low() {
		return nil
	}
	b.say(ctx, "Waiting for space on the server's disk")
	ctx, cancel := context.WithTimeoutCause(ctx, waitForDisk, errNoSpace)
	defer cancel()
	if b.store.once(ctx, func() bool { return !b.store.Disk.Low() }) {
		return nil
	}
	return context.Cause(ctx)
}

// whileSpace is a context that ends when there is nearly none left.
func (s *Store) whileSpace(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if s.Disk != nil {
		go func() {
			if s.once(ctx, s.Disk.NearlyNone) {
				cancel(errNoSpace)
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// once waits for something to hold of the disk; false if ctx ends first.
func (s *Store) once(ctx context.Context, holds func() bool) bool {
	look := time.NewTicker(lookAtDisk)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if holds() {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}
