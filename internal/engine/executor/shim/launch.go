// Package shim runs beside each command: it holds the attempt's lock, starts
// the command under its limits, keeps its log, ends its whole tree of processes
// when it must, and leaves a record of how it ended. It outlives the server
// that started it. What to run, and in which sandbox, is decided by whoever
// writes the Launch; the package keeps to the standard library and
// golang.org/x/sys, because every task pays for its start.
package shim

import "time"

// Launch is what the shim is told, in the attempt's folder.
type Launch struct {
	Fence string `json:"fence"`

	Argv []string `json:"argv"`          // the first is an absolute path
	Env  []string `json:"env,omitempty"` // of Argv; empty for a sandbox
	Dir  string   `json:"dir"`           // where Argv starts

	// Args reach a sandbox as NUL-separated text on descriptor ArgsFD, so that
	// nobody reads the command's environment off a list of processes.
	Args []string `json:"args,omitempty"`
	// Sandboxed says that Argv is bubblewrap: it reports on descriptor
	// StatusFD, and must not be sent TERM, which would end the command at once.
	Sandboxed bool `json:"sandboxed,omitempty"`

	// User is the plain uid and gid that the shim drops to, if it is not 0.
	User uint32 `json:"user,omitempty"`
	// Binds are made in a mount namespace of the shim's own, below Stage, for
	// folders that User could not reach otherwise.
	Stage string `json:"stage,omitempty"`
	Binds []Bind `json:"binds,omitempty"`

	// Slot is the place among the machine's running attempts; the shim has no
	// use for it, the next server has.
	Slot   int    `json:"slot"`
	Cgroup Cgroup `json:"cgroup"`
	Memory int64  `json:"memory,omitempty"` // bytes; held by the shim itself where no group does
	Disk   int64  `json:"disk,omitempty"`   // bytes, beyond what is there at the start
	Log    int64  `json:"log,omitempty"`    // bytes kept of the log

	Timeout time.Duration `json:"timeout,omitempty"`
	Grace   time.Duration `json:"grace,omitempty"`
	Away    time.Duration `json:"away,omitempty"`

	Outputs     []OutputPattern `json:"outputs,omitempty"`
	NotEnforced []string        `json:"notEnforced,omitempty"`
}

// The descriptors on which a sandbox is spoken to.
const (
	ArgsFD   = 3
	StatusFD = 4
)

// Bind shows From as Name below Launch.Stage.
type Bind struct {
	From string `json:"from"`
	Name string `json:"name"`
}

// Cgroup is where the command's processes are held. Its limits are set
// already.
type Cgroup struct {
	// Threads are the lists of version 1 that a thread joins before it starts
	// the command.
	Threads []string `json:"threads,omitempty"`
	// Folder is the group of version 2 that the command is born into.
	Folder string `json:"folder,omitempty"`

	OOM       string `json:"oom,omitempty"` // has a line oom_kill
	CPU       string `json:"cpu,omitempty"` // nanoseconds, or a line usage_usec
	Memory    string `json:"memory,omitempty"`
	MemoryKey string `json:"memoryKey,omitempty"` // its line in Memory
}

// Held reports whether there is a group at all.
func (c Cgroup) Held() bool { return len(c.Threads) > 0 || c.Folder != "" }

const (
	defaultLog = 1 << 30
	maxLine    = 32 << 10
	tick       = 200 * time.Millisecond
)

// The statuses of the shim itself.
const (
	Done     = 0
	Doubled  = 75 // another shim has, or had, this attempt
	Broken   = 70 // no record could be written
	Unusable = 64 // there is nothing to launch
)

// Version is what the shim answers, as its status, when it is asked for
// VersionFlag: a server does not hand its tasks to a shim of another build.
const (
	Version     = 101
	VersionFlag = "-version"
)
