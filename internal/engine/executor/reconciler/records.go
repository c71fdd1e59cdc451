package reconciler

import (
	"context"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// Records keep what attempts are to do, what servers want of them, what their shims
// report, and what has become of them. All servers of a scope share them.
type Records interface {
	// Prepare makes what an attempt needs before its inputs can be staged.
	Prepare(ctx context.Context, k executor.Key) error
	// Add keeps an attempt and what it is to do. One that is there stays as it is;
	// under another fence it is fault.KindConflict. It is an error where another worker
	// has taken the run over.
	Add(ctx context.Context, a Attempt, s executor.Spec, notEnforced []string) error
	// List reads all attempts that were added and not removed.
	List(ctx context.Context) ([]Attempt, error)
	// End reads how an attempt ended. Of one that is not there it is empty.
	End(ctx context.Context, r Ref) (End, error)
	// Allow is an error where a later owner of the run has given orders about an attempt.
	Allow(ctx context.Context, r Ref) error
	// Renew says that attempts are wanted, but for those that Allow refuses.
	Renew(ctx context.Context, list []Ref) error
	// Stop has the shim end its command. A later call may shorten the grace.
	Stop(ctx context.Context, r Ref, grace time.Duration) error
	// Block notes whether an attempt waits for what may never come.
	Block(ctx context.Context, r Ref, blocked bool) error
	// Conclude keeps the outcome of an attempt: the first one counts, and no shim begins
	// with the attempt any more. It is fault.KindConflict where that cannot be kept from
	// a shim which has begun since the attempt was read.
	Conclude(ctx context.Context, r Ref, o Outcome) error
	// Remove forgets an attempt, with its log.
	Remove(ctx context.Context, r Ref) error
	// Log reads the log of an attempt as far as it was known when that was read.
	Log(ctx context.Context, a Attempt, offset int64) (executor.Log, error)
	// Marks say when the log from offset on was written.
	Marks(ctx context.Context, r Ref, offset int64) ([]executor.LogMark, error)
}

// Ref names an attempt, and no other with the same ID, to whoever had its run under
// RunFence. Where another worker has taken the run over since, nothing is done.
type Ref struct {
	ID, Fence string
	RunFence  int64
}

// Attempt is one that was submitted and not released.
type Attempt struct {
	Job         Job   // without its ticket
	RunFence    int64 // of the run, when the attempt was added or read
	SubmittedAt time.Time
	BlockedAt   time.Time // since when it waits for what may never come; zero: it does not

	BeganAt   time.Time // when its shim began; zero before
	RunningAt time.Time // when a server heard that the command runs
	HeardAt   time.Time // when a server last heard its shim
	EndedAt   time.Time // when a server heard how the command ended

	Stopping bool // it is to end, within Grace
	Grace    time.Duration

	Host     string          // where it runs, as its shim says
	Usage    *executor.Usage // the last sample; nil before
	Progress string          // as the command last said
	LogSize  int64

	Reported bool // its shim has reported how the command ended
	Decided  bool // a server has decided on its outcome
}

// Ref is the attempt to whoever has its run.
func (a Attempt) Ref() Ref { return Ref{a.Job.ID, a.Job.Fence, a.RunFence} }

// End is how an attempt ended. It may be large.
type End struct {
	Began   bool            // a shim has begun with it, though it may have said nothing yet
	Exit    json.RawMessage // an executor.Exit, as the shim reports it; nil before
	Outcome *Outcome        // what a server has made of it; nil before
}

// Outcome is what has become of an attempt, as the first server saw it. The times in
// its record are the server's.
type Outcome struct {
	Phase    executor.Phase  `json:"phase"`
	Reason   executor.Reason `json:"reason"`
	Detail   string          `json:"detail,omitempty"`
	Node     string          `json:"node,omitempty"`
	Exit     *executor.Exit  `json:"exit,omitempty"`
	Recorded bool            `json:"recorded,omitempty"` // its shim has reported it
	At       time.Time       `json:"at"`
	SeenAt   time.Time       `json:"seenAt,omitzero"` // of one that is gone: when its shim last said something
}
