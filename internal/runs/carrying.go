package runs

import (
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// ErrFenced is what a worker hears that has lost a run: nothing was written.
var ErrFenced = fault.Conflict("another worker carries this run").WithCode("fenced")

// Ending is how a run ends.
type Ending struct {
	Status  lifecycle.Status
	Code    lifecycle.ErrorCode // empty when it completed or was cancelled
	Message string
}

// Node is a node of a run, as far as it has come.
type Node struct {
	ID           string
	Name         string
	State        lifecycle.NodeState
	Attempt      int
	Cached       bool
	CacheMiss    string
	ExitCode     *int
	Shards       *int // of a scattered one
	ShardsDone   int
	ShardsFailed int
	PeakMemory   int64
	CPU          time.Duration
	StartedAt    time.Time
	FinishedAt   time.Time
}

// AttemptState is what became of a try.
type AttemptState string

// The states of a try.
const (
	AttemptStarted   AttemptState = "started"
	AttemptSucceeded AttemptState = "succeeded"
	AttemptFailed    AttemptState = "failed"
	AttemptLost      AttemptState = "lost"
	AttemptCancelled AttemptState = "cancelled"
)

// Attempt is one try of one shard of a node.
type Attempt struct {
	Node      string
	Shard     int
	Number    int
	Fence     string
	Host      string
	State     AttemptState
	Reason    string
	Item      string // a shard's value, as JSON
	AwayUntil time.Time
	RetryAt   time.Time
	StartedAt time.Time
	EndedAt   time.Time
}

// Output is a file that a node has produced.
type Output struct {
	Key         string
	Node        string
	Port        string
	Shard       int
	Name        string
	ContentType string
	Size        int64
	SHA256      string
	Mark        string
	Blob        string
}

// Step is what a worker writes at once: it is all there, or nothing is.
type Step struct {
	Nodes    []Node
	Attempts []Attempt
	Outputs  []Output
	Events   []Event
	Done     int // nodes that have ended
	Progress int // percent
}

// Record is what is known of a run that somebody else began to carry.
type Record struct {
	Nodes    []Node
	Attempts []Attempt
	Outputs  []Output
}

// LogPiece is some text that a command wrote.
type LogPiece struct {
	Node    string
	Shard   int
	Attempt int
	Text    []byte
}

// LogPage is a stretch of a log.
type LogPage struct {
	Text   []byte
	Offset int64
	Size   int64 // of the whole log, so far
}
