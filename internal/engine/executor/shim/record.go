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
	TimedOut    bool   `json:"timedOut,omitempty"`
	Stopped     bool   `json:"stopped,omitempty"`   // as its server asked
	Abandoned   bool   `json:"abandoned,omitempty"` // its server stayed away too long
	Preempted   bool   `json:"preempted,omitempty"` // the machine asked it to end

	MaxRSS  int64         `json:"maxRSS"`  // bytes
	CPUTime time.Duration `json:"cpuTime"` // of the whole tree, as far as it is known
	Start   time.Time     `json:"start"`
	End     time.Time     `json:"end"`

	Outputs []Output `json:"outputs,omitempty"`
	Missing []string `json:"missing,omitempty"` // ports that are not optional and have no file
	Refused string   `json:"refused,omitempty"` // a file that is there and cannot be kept, and why

	LogBytes    int64    `json:"logBytes"`
	NotEnforced []string `json:"notEnforced,omitempty"` // limits that were asked for and not held
}

// Output is one file that the command left, and OutputPattern where it was
// expected.
type (
	Output        = outputs.File
	OutputPattern = outputs.Pattern
)

// Usage is a sample of what a whole attempt uses.
type Usage struct {
	CPU    time.Duration `json:"cpu"`    // since it began
	Memory int64         `json:"memory"` // bytes
	Disk   int64         `json:"disk"`   // bytes, where it is bounded
	At     time.Time     `json:"at"`
}

// LogMark says that the log from Offset on, up to the next mark, was written at
// about At.
type LogMark struct {
	Offset int64
	At     time.Time
	Stderr bool
}
