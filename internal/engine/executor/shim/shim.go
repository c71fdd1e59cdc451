// Package shim carries an attempt out, in a process of its own beside the server, on a
// machine of a cluster or in a pod: it starts the command under its limits, keeps its
// log, ends its whole tree of processes when it must, and says how it ended. It outlives
// the server that started it. What to run, and in which sandbox, is decided by whoever
// writes the Launch.
package shim

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// shim is what the goroutines of this process share.
type shim struct {
	sampled func(Usage) // on the goroutine that also keeps the log

	shutdown atomic.Bool               // the machine goes down
	frozen   atomic.Bool               // the command is to stand still
	fullAt   atomic.Pointer[time.Time] // when the file system was last seen full; nil: never

	news int // a descriptor that can be read from once something is wanted of the attempt; -1: none
}

func newShim(sampled func(Usage)) *shim {
	news, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		news = -1
	}
	return &shim{sampled: sampled, news: news}
}

// wake makes the goroutine of the attempt look at it now.
func (s *shim) wake() {
	if s.news >= 0 {
		_, _ = unix.Write(s.news, binary.NativeEndian.AppendUint64(nil, 1))
	}
}

// rest is how long an attempt of which nothing is wanted need not be looked at.
func (s *shim) rest() time.Duration {
	if s.news < 0 {
		return tick
	}
	return rest
}
