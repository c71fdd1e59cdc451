package treecache

import (
	"context"
	"errors"
	"time"
)

// Trees give way to everything else that needs the disk: making one begins where there
// is enough of it, and ends when there is nearly none. It can be done again.

const (
	lookAtDisk = 250 * time.Millisecond
	// waitForDisk is less than whoever waits for a tree does: that there is no
	// space is not the author's failure.
	waitForDisk = 10 * time.Minute
	// lowLooks is how many looks in a row may find too little: two seconds.
	lowLooks = 8
)

// Disk knows how much space there is for trees. Without one there is always enough.
type Disk interface {
	Low() bool        // nothing new may start
	NearlyNone() bool // something must end, so that the rest can go on
}

// ErrNoSpace is ours: the run that needs the tree goes on later.
var ErrNoSpace = errors.New("the server's disk is nearly full: no image is fetched and no environment is built")

// AwaitSpace waits until a tree may take more of a disk.
func AwaitSpace(ctx context.Context, d Disk) error {
	if d == nil || !d.Low() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, waitForDisk, ErrNoSpace)
	defer cancel()
	if once(ctx, func() bool { return !d.Low() }) {
		return nil
	}
	return context.Cause(ctx)
}

// WhileSpace is a context that ends, because of ErrNoSpace, when there is nearly no
// space left, or little for some time.
func WhileSpace(ctx context.Context, d Disk) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if d != nil {
		go func() {
			low := 0
			if once(ctx, func() bool {
				if low++; !d.Low() {
					low = 0
				}
				return d.NearlyNone() || low == lowLooks
			}) {
				cancel(ErrNoSpace)
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// once waits for something to hold of a disk; false if ctx ends first.
func once(ctx context.Context, holds func() bool) bool {
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
