package shim

import (
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
)

// Exit is how an attempt ended.
type Exit struct {
	Fence string `json:"fence"`

	Code   int `json:"code"`             // as a shell counts: 128 and more is a signal
	Signal int `json:"signal,omitempty"` // that ended the command

	StartFailed string `json:"startFailed,omitempty"` // why the command never ran
	NoProgram   bool   `json:"noProgram,omitempty"`   // it never ran because its program is not there
	OOM         bool   `json:"oom,omitempty"`         // went over its memory
	OutOfDisk   bool   `json:"outOfDisk,omitempty"`   // went over its disk
	Evicted     bool   `json:"evicted,omitempty"`     // was ended for what it took up of a disk that was nearly full
	NoSpace     bool   `json:"noSpace,omitempty"`     // failed while the file system was full, whoever filled it
	TimedOut    bool   `json:"timedOut,omitempty"`
	Stopped     bool   `json:"stopped,omitempty"`   // as its server asked
	Abandoned   bool   `json:"abandoned,omitempty"` // its server stayed away too long
	Preempted   bool   `json:"preempted,omitempty"` // the machine asked it to end

	MaxRSS  int64         `json:"maxRSS"`  // bytes
	CPUTime time.Duration `json:"cpuTime"` // of the whole tree, as far as it is known
	Start   time.Time     `json:"start"`
	End     time.Time     `json:"end"`

	// OwnEnd is the end by the job's own account, where Start and End are what a server saw;
	// zero: End. A job is believed for the time in which no server looked.
	OwnEnd time.Time `json:"ownEnd,omitzero"`
	// Suspended are the times in which the command was frozen, or stood still with the
	// whole machine.
	Suspended []Span `json:"suspended,omitempty"`

	Outputs []Output `json:"outputs,omitempty"`
	Missing []string `json:"missing,omitempty"` // ports that are not optional and have no file
	Refused string   `json:"refused,omitempty"` // a file that is there and cannot be kept, and why

	LogBytes    int64    `json:"logBytes"`
	NotEnforced []string `json:"notEnforced,omitempty"` // limits that were asked for and not held
}

// Observed returns the record of a job with the times at which a server saw it start and
// end. What the job says of its times counts as OwnEnd alone.
func (e Exit) Observed(start, end time.Time) Exit {
	own := start.Add(e.End.Sub(e.Start))
	if own.Before(start) || own.After(end) {
		own = end
	}
	e.Start, e.End, e.OwnEnd, e.Suspended = start, end, own, nil
	return e
}

// Shifted returns the record by a clock that is ahead by so much of that of its machine.
func (e Exit) Shifted(ahead time.Duration) Exit {
	e.Start, e.End = e.Start.Add(ahead), e.End.Add(ahead)
	e.Suspended = ShiftSpans(e.Suspended, ahead)
	return e
}

// ShiftSpans returns times by a clock that is ahead by so much.
func ShiftSpans(spans []Span, ahead time.Duration) []Span {
	var shifted []Span
	for _, s := range spans {
		shifted = append(shifted, Span{s.From.Add(ahead), s.To.Add(ahead)})
	}
	return shifted
}

// Output is one file that the command left, and OutputPattern where it was
// expected.
type (
	Output        = outputs.File
	OutputPattern = outputs.Pattern
)

// Span is the time between two moments.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Usage is a sample of what a whole attempt uses.
type Usage struct {
	CPU    time.Duration `json:"cpu"`    // since it began
	Memory int64         `json:"memory"` // bytes
	Disk   int64         `json:"disk"`   // bytes, where it is bounded
	At     time.Time     `json:"at"`

	Suspended []Span `json:"suspended,omitempty"` // as Exit has them
}
