package shim

import (
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim/stage"
)

// Launch is an attempt that the shim is to execute.
type Launch struct {
	ID       string          `json:"id"`
	Fence    string          `json:"fence"`
	Folder   string          `json:"folder"`          // the attempt's own
	Metadata json.RawMessage `json:"about,omitempty"` // for the next server; the shim only keeps it

	Argv []string `json:"argv"`          // the first is an absolute path
	Env  []string `json:"env,omitempty"` // of Argv; that of a sandboxed command is in Sandbox
	Dir  string   `json:"dir"`           // where Argv starts

	// Sandbox says that Argv is bubblewrap, which must not be sent TERM: it
	// would end the command at once.
	Sandbox *Sandbox `json:"sandbox,omitempty"`

	// User is the plain uid and gid that the shim drops to, if it is not 0.
	User uint32 `json:"user,omitempty"`
	// Stage is what the sandbox is made of, where User could not reach it.
	Stage  *stage.Stage `json:"stage,omitempty"`
	Cgroup Cgroup       `json:"cgroup"`
	Memory int64        `json:"memory,omitempty"` // bytes; held by the shim itself where no group does
	Disk   int64        `json:"disk,omitempty"`   // bytes in its folders
	Log    int64        `json:"log,omitempty"`    // bytes kept of the log

	// Secrets are values of the command's environment that nobody may read in
	// its log, nor in its record. They are in the shim's memory alone.
	Secrets []string `json:"secrets,omitempty"`

	Timeout      time.Duration `json:"timeout,omitempty"`
	Grace        time.Duration `json:"grace,omitempty"`
	AbandonAfter time.Duration `json:"away,omitempty"`

	Outputs     []OutputPattern `json:"outputs,omitempty"`
	NotEnforced []string        `json:"notEnforced,omitempty"`
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

// Exists reports whether there is a group at all.
func (c Cgroup) Exists() bool { return len(c.Threads) > 0 || c.Folder != "" }

const (
	defaultLog = 64 << 20
	tick       = 200 * time.Millisecond
	rest       = time.Second // between two looks at a command of which nothing must be held
)

// The statuses of the shim itself.
const (
	Done           = 0
	AlreadyRunning = 75 // another process has the attempt
	Failed         = 70 // it could not go on
	BadArguments   = 64 // its arguments are wrong
)

// Version is what the small program answers, as its status, when it is asked for
// VersionFlag: it can be run.
const (
	Version     = 112
	VersionFlag = "-version"
)
