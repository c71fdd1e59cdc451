// Package attempts is what we and a task that runs out of our reach say to each
// other. Beside the task runs a shim of ours: it exchanges a ticket once for a
// session of its own, fetches what the task reads, reports how it goes, sends what
// the task made, and says last how it ended. Any server takes that; all of it is
// bound to one attempt, and nothing is taken after the attempt has ended.
package attempts

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// Attempt is one that was submitted and not released.
type Attempt struct {
	ID    string // unique to run, node, shard and number
	Run   ids.Run
	Scope string // of its driver
	Fence string
	About json.RawMessage // of its driver, for the next server

	RunFence int64 // of the run, when the attempt was added or read

	SubmittedAt time.Time
	BeganAt     time.Time // when its shim came; zero before
	RunningAt   time.Time // when the shim said that the command runs
	HeardAt     time.Time // when the shim was last heard
	EndedAt     time.Time // when it said how the command ended

	Renewals int64
	Stopping bool // it is to end, within Grace
	Grace    time.Duration

	State   json.RawMessage // what the shim last said of the command; nil before
	LogSize int64
	Said    bool // the shim has said how the command ended
	Decided bool // its driver has made something of it
}

// End is how an attempt ended. It may be large.
type End struct {
	Exit    json.RawMessage // as the shim says; nil before
	Outcome json.RawMessage // what its driver has made of it; nil before
}

// Ref names an attempt, and no other with the same ID, to whoever had its run under
// RunFence. Where another worker has taken the run over since, nothing is done.
type Ref struct {
	ID, Fence string
	RunFence  int64
}

// Ref is the attempt to whoever has its run.
func (a Attempt) Ref() Ref { return Ref{a.ID, a.Fence, a.RunFence} }

// Order is what is to be done. Only the shim of the attempt sees it.
type Order struct {
	Objects []string        `json:"objects,omitempty"` // that it may read, by number
	Task    json.RawMessage `json:"task"`              // of driver and shim
}

// Begin is how a shim introduces itself. It makes the session up, so that it can
// say the same again when the answer was lost on the way.
type Begin struct {
	Version int    `json:"version"`
	Fence   string `json:"fence"`
	Ticket  string `json:"ticket"`
	Session string `json:"session"`
}

// Version is that of what is said here.
const Version = 1

// Report is what a shim says of its attempt. Each part may be left out, and said
// again.
type Report struct {
	Running bool            `json:"running,omitempty"` // the command has started
	State   json.RawMessage `json:"state,omitempty"`
	Log     *Log            `json:"log,omitempty"`
	Exit    json.RawMessage `json:"exit,omitempty"` // nothing is taken after it
}

// Log is a piece of the attempt's log. Marks are of driver and shim.
type Log struct {
	Offset  int64           `json:"offset"`
	Missing int64           `json:"missing,omitempty"` // bytes before Offset that are not kept
	Text    []byte          `json:"text"`
	Marks   json.RawMessage `json:"marks,omitempty"`
}

// Answer is what the shim hears. It goes on with its log from LogSize.
type Answer struct {
	Renewals int64         `json:"renewals"`
	Stop     bool          `json:"stop,omitempty"`
	Grace    time.Duration `json:"grace,omitempty"`
	LogSize  int64         `json:"logSize"`
	RunFence int64         `json:"runFence,omitempty"` // of the run; an answer with an older one is ignored; 0: of an earlier release
}

// Answered is a header of what a server of ours says. Without it a refusal is that of
// somebody on the way, and may pass.
const Answered = "Millrace-Attempt"

// Bounds of what a shim says at once, of what is kept of its log in all, and of how
// long a log can be of which something is missing.
const (
	MaxLogs  = 256 << 20
	MaxSize  = 1 << 40
	MaxLog   = 512 << 10
	MaxState = 64 << 10
	MaxExit  = 32 << 20
	MaxBody  = MaxExit + 2*MaxLog
)

// Submitted is what drivers do with attempts.
type Submitted interface {
	// AddAttempt keeps an attempt and what it is to do. One that is there stays as
	// it is; under another fence it is fault.KindConflict, and where another worker has
	// taken the run over runs.ErrFenced.
	AddAttempt(ctx context.Context, a Attempt, o Order) error
	// AttemptsIn are those of a scope.
	AttemptsIn(ctx context.Context, scope string) ([]Attempt, error)
	// RenewAttempts says that attempts are wanted.
	RenewAttempts(ctx context.Context, list []Ref) error
	// StopAttempt has the shim end its command.
	StopAttempt(ctx context.Context, a Ref, grace time.Duration) error
	// ConcludeAttempt keeps what has become of an attempt: the first word counts.
	ConcludeAttempt(ctx context.Context, a Ref, outcome json.RawMessage) error
	// RemoveAttempt forgets an attempt, with its log.
	RemoveAttempt(ctx context.Context, a Ref) error
}

// Pieces are what attempts have left, which is read one by one.
type Pieces interface {
	// AttemptEnd is how one ended; of one that is not there it is empty.
	AttemptEnd(ctx context.Context, id, fence string) (End, error)
	// AttemptLog are pieces of a log from the one on that has the byte at offset.
	AttemptLog(ctx context.Context, id string, offset int64, limit int) ([]Log, error)
}

// Reports is what shims say, as it is kept.
type Reports interface {
	// BeginAttempt binds an attempt to a session, given as its hash. One that has
	// another session is fault.KindConflict, one that has ended fault.KindStale.
	BeginAttempt(ctx context.Context, id, fence, session string, now time.Time) (Order, error)
	// OrderOf is that of an attempt which has the session and has not ended. It is
	// fault.KindUnauthenticated or fault.KindStale otherwise. CheckSession is the same
	// without the order.
	CheckSession(ctx context.Context, id, session string) error
	OrderOf(ctx context.Context, id, session string) (fence string, o Order, err error)
	// ReportAttempt takes in a report, under the same conditions.
	ReportAttempt(ctx context.Context, id, session string, r Report, now time.Time) (Answer, error)
}

// Objects keeps the bytes of attempts.
type Objects interface {
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	// Upload is fault.KindConflict where there is something already.
	Upload(ctx context.Context, key string, r io.Reader, size int64) error
	// Size is fault.KindNotFound where nothing is.
	Size(ctx context.Context, key string) (int64, error)
	DeletePrefix(ctx context.Context, prefix string) (n int, err error)
}
