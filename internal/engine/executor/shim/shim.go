// Package shim carries an attempt out, in a process of its own beside the server, on a
// machine of a cluster or in a pod: it starts the command under its limits, keeps its
// log, ends its whole tree of processes when it must, and says how it ended. It outlives
// the server that started it. What to run, and in which sandbox, is decided by whoever
// writes the Launch.
package shim

import (
	"sync/atomic"
	"time"
)

// shim is what the goroutines of this process share.
type shim struct {
	sampled func(Usage) // on the goroutine that also keeps the log

	shutdown atomic.Bool               // the machine goes down
	frozen   atomic.Bool               // the command is to stand still
	fullAt   atomic.Pointer[time.Time] // when the file system was last seen full; nil: never
}

func newShim(sampled func(Usage)) *shim {
	return &shim{sampled: sampled}
}
