// Package remote is the shim's third mode: one attempt on a machine that shares no
// folder with us. It brings what the command reads, reports to a server how it
// goes, sends what the command made, and says last how it ended. While no server
// answers the command goes on, and what is to be said waits.
package remote

import (
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

// Task is what is to be done. Paths are the machine's own.
type Task struct {
	Launch shim.Launch `json:"launch"` // the first of Argv is looked for on the machine
	// Defaults are variables that the command gets where neither the launch nor the
	// image sets them.
	Defaults []string `json:"defaults,omitempty"`
	Inherit  bool     `json:"inherit,omitempty"` // the variables of the image, too
	Temp     string   `json:"temp"`
	In       string   `json:"in"` // where inputs are
	Inputs   []Input  `json:"inputs,omitempty"`
	Script   string   `json:"script,omitempty"` // the command, where it is in a file
	File     string   `json:"file,omitempty"`   // that file
}

// Input is a file that the command reads.
type Input struct {
	Path   string `json:"path"`             // below In
	Object int    `json:"object,omitempty"` // its number, from 1; 0: it is Text
	Text   []byte `json:"text,omitempty"`
	SHA256 string `json:"sha256,omitempty"` // of its bytes, where that is known
	Folder bool   `json:"folder,omitempty"` // they are a tar archive of what is in the folder Path
}

// State is what a shim says of a command that runs.
type State struct {
	Host     string      `json:"host,omitempty"`
	Staging  bool        `json:"staging,omitempty"` // inputs are on their way
	Usage    *shim.Usage `json:"usage,omitempty"`
	Progress string      `json:"progress,omitempty"` // as the command wrote it
}

// Mark is a mark of the log, of which offsets are those of the whole.
type Mark struct {
	Offset int64 `json:"o"`
	At     int64 `json:"t"` // milliseconds
	Stderr bool  `json:"e,omitempty"`
}

// The variables that say what a shim is to do. None of it is worth anything once
// the shim has begun.
const (
	URLVariable    = "MILLRACE_ATTEMPT_URL"
	IDVariable     = "MILLRACE_ATTEMPT_ID"
	FenceVariable  = "MILLRACE_ATTEMPT_FENCE"
	TicketVariable = "MILLRACE_ATTEMPT_TICKET"
	CAVariable     = "MILLRACE_ATTEMPT_CA"   // PEM, of the server; empty: the machine's own
	NodeVariable   = "MILLRACE_ATTEMPT_NODE" // what the machine is called
)

const (
	attemptFlag = "-attempt" // carries an attempt out, as the variables say
	copyFlag    = "-copy"    // puts this program into a file
	attendFlag  = "-attend"  // waits until that has been done
)

// Arguments are those that have the program carry an attempt out.
func Arguments() []string { return []string{attemptFlag} }

// CopyArguments have it put itself into a file, for an image that has it not.
func CopyArguments(file string) []string { return []string{copyFlag, file} }

// AttendArguments have it wait until another process has done that.
func AttendArguments(file string) []string { return []string{attendFlag, file} }

// NoServer is the status of a shim whose attempt has not begun, since no server
// answered in time.
const NoServer = 75

// The times between reports, and how long the shim tries to be heard.
const (
	reportEvery = time.Second
	beginFor    = 10 * time.Minute
	deliverFor  = time.Hour
	retryFirst  = 100 * time.Millisecond
	retryMost   = 5 * time.Second
)

func marksOf(list []tasklog.Mark) json.RawMessage {
	marks := make([]Mark, len(list))
	for i, m := range list {
		marks[i] = Mark{m.Offset, m.At.UnixMilli(), m.Stderr}
	}
	text, _ := json.Marshal(marks) // numbers alone
	return text
}
