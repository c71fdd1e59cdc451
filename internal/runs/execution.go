package runs

import (
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs/admission"
)

// ErrFenced is what a worker gets that has lost a run: nothing was written.
var ErrFenced = fault.Conflict("another worker executes this run").WithCode("fenced")

// Secret is a value that a command gets, and what distinguishes it from the one that
// the name had before.
type Secret struct {
	Value   string
	Version string
}

// HeldRun names a run and the fence under which a worker holds it.
type HeldRun struct {
	Run   ids.Run
	Fence int64
}

// Renewal says which leases were extended, and of which somebody else is the owner or
// the run has ended. Nothing is known of those in neither list.
type Renewal struct{ Kept, Lost []HeldRun }

// Claimed is what a worker that asked for runs gets.
type Claimed struct {
	Runs    []Run
	Prepare []admission.Candidate // what it is to fetch for runs that stay queued meanwhile
	Queued  map[ids.Run]bool      // those of the runs it prepares that are queued still
}

// TakeOver is a worker that looks for runs which nobody holds.
type TakeOver struct {
	Owner        string        // begins with Host and a space
	Host         string        // earlier workers on it are gone
	Scope        string        // whose tasks it sees; empty: those of Host
	Executor     string        // whose runs it takes, beside those that name none
	AbandonAfter time.Duration // after which tasks have ended that nobody renewed
	Held         map[ids.Run]bool

	Orphans bool // it takes those of executors that are gone, too
	Started bool // just now: runs of earlier workers on its host are to be found
	OnlyOwn bool // it cannot tell which leases have ended, and takes only what its host was at
}

// Ending is how a run ends.
type Ending struct {
	Status  lifecycle.Status
	Code    lifecycle.ErrorCode // empty when it completed or was cancelled
	Message string
	Last    *Step // what is written with it; nil: nothing
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
	ShardsReused int // counted once the run has ended
	PeakMemory   int64
	CPU          time.Duration
	Fetched      int64  // bytes of its inputs from elsewhere, while it waits for them
	ToFetch      int64  // in all; 0: it does not wait
	WaitsFor     string // of one that is queued: what for, in the words of its executor
	StartedAt    time.Time
	FinishedAt   time.Time

	LaunchedBy string   // of a process of a pipeline: the step that launches it
	Follows    []string // ids of the processes before it
}

// AttemptState is what became of an attempt.
type AttemptState string

// The states of an attempt.
const (
	AttemptStarted   AttemptState = "started"
	AttemptSucceeded AttemptState = "succeeded"
	AttemptFailed    AttemptState = "failed"
	AttemptLost      AttemptState = "lost"
	AttemptCancelled AttemptState = "cancelled"
)

// Attempt is one execution of one shard of a node.
type Attempt struct {
	Node        string
	Shard       int
	Number      int
	Fence       string
	Host        string
	State       AttemptState
	Reason      string
	Message     string // why it failed, for people
	Item        string // a shard's value, as JSON
	Memory      int64  // bytes that it was given
	CPUs        int    // that it was given, in whole ones
	CacheKey    string // what it computes, and from what; empty: nobody asks
	Parts       []byte // of the key, a JSON object
	Outputs     int    // files that it made
	ExitCode    *int   // nil while it runs, and where nothing ran
	Peak        int64  // bytes of memory that it had at most
	AbandonedAt time.Time
	RetryAt     time.Time
	StartedAt   time.Time
	EndedAt     time.Time
	Placement
}

// Placement is where an attempt runs, as far as its executor says.
type Placement struct {
	Machine string
	Job     string    // the engine's own number for it
	Inspect string    // the command with which a person looks at the job
	BeganAt time.Time // when its command began, after it had waited for a place
}

// Queued is how long an attempt waited for a place; ok is false while it does,
// and where that is not known.
func (a Attempt) Queued() (d time.Duration, ok bool) {
	return max(0, a.BeganAt.Sub(a.StartedAt)), !a.BeganAt.IsZero()
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
	Reused      bool // the bytes are those of an earlier run
	Folder      *Folder
}

// Contents is how many bytes the output holds: of a folder, those of its files.
func (o Output) Contents() int64 {
	if o.Folder != nil {
		return o.Folder.Bytes
	}
	return o.Size
}

// Folder is what an output is beyond its own bytes if it is the manifest of a folder.
type Folder struct {
	Data   string // the key of the bytes of its files, one after the other
	SHA256 string // of those bytes
	Mark   string
	Files  int
	Bytes  int64
}

// Stored are the objects that an output is made of, with what they have to be.
func (o Output) Stored() map[string]Stored {
	all := map[string]Stored{o.Blob: {o.Size, o.Mark}}
	if o.Folder != nil {
		all[o.Folder.Data] = Stored{o.Folder.Bytes, o.Folder.Mark}
	}
	return all
}

// Step is what a worker writes at once: it is all there, or nothing is.
type Step struct {
	Nodes    []Node
	Attempts []Attempt
	Outputs  []Output
	Logs     []LogPiece
	LogMoves []LogMove
	Events   []Event
	Commit   string // of the run's code, when it becomes known
	Done     int    // nodes that have ended
	Progress int    // percent

	Billed      time.Duration // as of a Run
	BilledSince time.Time
}

// Empty reports whether there is nothing to write.
func (s Step) Empty() bool {
	return len(s.Nodes)+len(s.Attempts)+len(s.Outputs)+len(s.Logs)+len(s.LogMoves)+len(s.Events)+len(s.Commit) == 0
}

// LogSize is by how much the run's log grows.
func (s Step) LogSize() (size int64) {
	for _, p := range s.Logs {
		size += p.Size + p.Missing
	}
	return size
}

// LogObjects is how much text has come to lie in objects, where it counts as
// storage. What stays in the database is too little to count.
func (s Step) LogObjects() (size int64) {
	for _, p := range s.Logs {
		if p.Object != "" {
			size += p.Size
		}
	}
	for _, m := range s.LogMoves {
		size += m.To - m.From
	}
	return size
}

// Loss is how a run was lost with its worker, or why the worker gave it back.
type Loss struct {
	LastSeen     time.Time // when it was last known to be at work
	CrashCounted bool      // it was, when its server went down
	HandedBack   string    // why its worker gave it back, for people: then it was not lost
	Panicked     bool      // its execution panicked; its worker is there
}

// ErrOutputsDeleted is what a worker gets that wants to reuse files which somebody has
// deleted meanwhile: nothing was written.
var ErrOutputsDeleted = fault.Conflict("results to be reused were deleted").WithCode("gone")

// Record is what is known of a run that another worker began to execute.
type Record struct {
	Nodes    []Node
	Attempts []Attempt
	Outputs  []Output
	Logged   []Logged
}

// Logged is how much of an attempt's log is kept, and where the log of its
// shard ends.
type Logged struct {
	Node    string
	Shard   int
	Attempt int
	Size    int64 // with what is missing
	Kept    int64
	End     int64
	Inline  int64 // bytes at the end of it that are not in an object
}

// LogPiece is some text that a command wrote. Its bytes are in the row, or in
// an object from a place on.
type LogPiece struct {
	Node        string
	Shard       int
	Attempt     int
	Start       int64 // in the log of the run
	NodeStart   int64 // in the log of this shard of the node
	Size        int64
	Missing     int64 // bytes of the log behind it that are not kept: its text is a line that says so
	Text        []byte
	Object      string
	ObjectStart int64
	Marks       []LogMark
}

// LogMove is a stretch of a shard's log that was moved into an object.
type LogMove struct {
	Node     string
	Shard    int
	From, To int64 // in the log of this shard of the node
	Object   string
}

// LogMark says when the text from an offset on was written, and whether as an
// error.
type LogMark struct {
	Offset int64     `json:"o"` // in the log of this shard of the node
	At     time.Time `json:"t"`
	Stderr bool      `json:"e,omitempty"`
}

// LogPage is a stretch of a log. It ends where something is missing, with the line
// that says so.
type LogPage struct {
	Text     []byte
	Offset   int64
	Next     int64 // where the next page begins
	Missing  int64 // bytes before Next that are not kept
	Size     int64 // of the whole log, so far
	Complete bool  // nothing will follow
	Marks    []LogMark
}
