package shim

import (
	"slices"

	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
)

// Sandbox is what stands around a command. Only the Order holds what people
// wrote: it goes to the first process of the sandbox, never to bubblewrap.
type Sandbox struct {
	Options []string `json:"options"` // of bubblewrap; our own words alone
	Filter  []byte   `json:"filter"`  // of system calls, as the kernel takes it
	firstprocess.Order
}

// Where a command in a sandbox finds things, and how much it may start.
const (
	WorkPath     = firstprocess.WorkPath
	ScriptPath   = firstprocess.ScriptPath
	MaxProcesses = firstprocess.MaxProcesses
)

// The descriptors on which a sandbox is spoken to, beside those of its first
// process.
const (
	OptionsFD = 3
	FilterFD  = 4
	programFD = 6 // of the first process
)

// initPath is where the first process of a sandbox finds its program: a mount
// for it would cost every task more than a descriptor.
const initPath = "/proc/self/fd/6"

// Init is the command line of the first process of a launch's sandbox.
func (p Program) Init(l Launch) []string {
	return slices.Concat([]string{initPath}, p[1:], []string{initFlag}, l.limits().Arguments())
}
