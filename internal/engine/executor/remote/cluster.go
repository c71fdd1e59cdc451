package remote

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// Cluster starts, lists and ends jobs. Nothing else is asked of it, and nothing that
// it remembers is believed over what a shim has said.
type Cluster interface {
	Capabilities(ctx context.Context) executor.Capabilities
	// Start starts a job. One of the same name is the same one. What will never be
	// accepted is fault.KindInvalid.
	Start(ctx context.Context, j Job) error
	// Jobs are all of ours, by name.
	Jobs(ctx context.Context) (map[string]Seen, error)
	// End ends and forgets a job. One that is not there is fine.
	End(ctx context.Context, name string) error
	// Changed receives when it is worth looking.
	Changed() <-chan struct{}
}

// Job is an attempt as a cluster starts it.
type Job struct {
	Name   string // safe everywhere
	ID     string // of the attempt
	Fence  string
	Ticket string // with which the shim introduces itself, once

	Key         executor.Key
	Image       string // empty: the cluster's own
	VCPU        float64
	MemoryBytes int64
	DiskBytes   int64
	InputBytes  int64 // beside it
	GPU         int
	Timeout     time.Duration // after which nothing of it is left; 0: none
	Grace       time.Duration
}

// Seen is what a cluster says of a job.
type Seen struct {
	Node    string
	Waits   bool            // it has not started
	Ended   bool            // nothing of it is left
	Leaving bool            // it is being ended
	Evicted bool            // the cluster has ended, or is ending, what runs for it
	Reason  executor.Reason // why it waits, or has ended
	Detail  string          // for people
}
