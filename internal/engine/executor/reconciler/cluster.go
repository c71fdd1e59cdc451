package reconciler

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// Cluster starts, lists and ends jobs. Nothing else is asked of it, and nothing that
// it remembers is believed over what a shim has said.
type Cluster interface {
	Capabilities(ctx context.Context) executor.Capabilities
	// Start starts a job and returns the cluster's own number for it. What the cluster
	// will never accept is fault.KindInvalid; what it refuses at the moment is
	// fault.KindConflict.
	Start(ctx context.Context, j Job) (number string, err error)
	// Jobs lists all jobs of ours that the cluster knows.
	Jobs(ctx context.Context) (Listing, error)
	// End ends and forgets a job. One that is not there is fine.
	End(ctx context.Context, name string) error
	// Forget removes what is left of a job that has reported itself how it ended.
	Forget(ctx context.Context, name string) error
	// Changed receives when it is worth looking.
	Changed() <-chan struct{}
}

// Signaller is a Cluster that can have a running job look at once what servers want of
// it, where its records reach it late.
type Signaller interface {
	Signal(ctx context.Context, name string) error
}

// Accounts is a Cluster that keeps accounts of the jobs that it does not list any more.
// Its word on when and why a job ended is waited for where no server saw that.
type Accounts interface {
	// Ended looks jobs up that have ended since a moment. It leaves out what it does
	// not know.
	Ended(ctx context.Context, names []string, since time.Time) (map[string]JobStatus, error)
}

// Job is an attempt as a cluster starts it.
type Job struct {
	Name   string // safe everywhere
	ID     string // of the attempt
	Fence  string
	Ticket string // with which the shim introduces itself, once

	// Permit is that of whoever has submitted the attempt to this server, for a cluster
	// that starts jobs later than it takes them; nil: it was another server.
	Permit executor.Permit `json:"-"`

	Key         executor.Key
	Owner       executor.Owner `json:",omitzero"`
	Image       string         // empty: the cluster's own
	Interpreter string         `json:",omitempty"`
	VCPU        float64
	MemoryBytes int64
	DiskBytes   int64
	InputBytes  int64 // beside it
	GPU         int
	Timeout     time.Duration // after which nothing of it is left; 0: none
	Grace       time.Duration
}

// Listing is what a cluster says of all jobs of ours.
type Listing struct {
	Jobs map[string]JobStatus // by name
	Age  time.Duration        // how long ago it said so
}

// JobStatus is what a cluster says of a job.
type JobStatus struct {
	Number    string // the cluster's own name for it, for people
	Node      string
	Waits     bool            // it has not started
	Blocked   bool            // it waits for what may never come, and not for its turn
	Suspended bool            // it stands still, and goes on later
	Ended     bool            // nothing of it is left
	Silent    bool            // it has ended in a way that its shim cannot report
	Never     bool            // it has not begun, and never will: nobody is permitted to start it any more
	Again     bool            // it has ended, and another one of its name can be started
	Leaving   bool            // it is being ended, or there is nothing to be ended
	Evicted   bool            // the cluster has ended, or is ending, what runs for it
	Unsure    bool            // it may be of another installation, and is no orphan
	Reason    executor.Reason // why it waits, or has ended
	Detail    string          // for people
	NotBegun  string          // what people are told if it has ended before its task began; empty: Detail

	Start, End time.Time // of one that has ended, as the cluster saw it; zero if unknown
}
