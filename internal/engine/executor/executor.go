// Package executor is the interface of what executes an attempt of a task,
// wherever that happens. A driver only starts, lists and stops; the truth about
// how an attempt ended is the exit record that the shim leaves beside the
// command, whatever an engine remembers. Which attempts there are, and what is
// tried again, is decided by the engine above.
package executor

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

// The types that drivers share with the shim.
type (
	Exit          = shim.Exit
	Output        = shim.Output
	OutputPattern = shim.OutputPattern
	Usage         = shim.Usage
	Log           = tasklog.Log
	LogMark       = tasklog.Mark
	Span          = shim.Span
)

// Key names one attempt of one shard of one node of one run. It is the same
// for every submission of that attempt, before and after a restart.
type Key struct {
	Run     ids.Run `json:"run"`
	Node    string  `json:"node"`
	Shard   int     `json:"shard"`
	Attempt int     `json:"attempt"`
}

// Folder is the name of the attempt's folder, unique to the key and safe on
// every file system.
func (k Key) Folder() string {
	return strings.Join([]string{string(k.Run), k.Node, strconv.Itoa(k.Shard), strconv.Itoa(k.Attempt)}, ".")
}

// Spec is an attempt, ready to be executed.
type Spec struct {
	Key   Key    `json:"key"`
	Fence string `json:"fence"` // of this attempt alone; an exit record without it counts for nothing

	Owner Owner `json:"owner,omitzero"`

	// Dir belongs to the attempt. The engine makes it, with an empty work/,
	// which becomes the working folder of the command.
	Dir string `json:"dir"`
	// Staged says that the engine has put files under in/, too. A sandboxed
	// command can read them and not change them.
	Staged bool `json:"staged,omitempty"`
	// Inputs are what Files.Stage brings there.
	Inputs []Input `json:"inputs,omitempty"`
	// Root is an unpacked image, or empty for the executor's own programs.
	Root string `json:"root,omitempty"`
	// Environment is a folder with software that the command can read, or empty.
	// Its bin is the first in PATH, which the engine sees to.
	Environment string `json:"environment,omitempty"`

	Interpreter string            `json:"interpreter"`
	Command     string            `json:"command"`
	Env         map[string]string `json:"env,omitempty"` // for the command alone, never for shim or sandbox
	// Secrets are the values in Env that are shown as *** in the log and in
	// errors. They are kept in memory alone.
	Secrets []string `json:"-"`

	VCPU        float64       `json:"vcpu"`
	MemoryBytes int64         `json:"memoryBytes"`         // 0: no limit
	DiskBytes   int64         `json:"diskBytes,omitempty"` // of what the command writes; 0: no limit
	LogBytes    int64         `json:"logBytes,omitempty"`  // kept of the log; 0: the shim's own bound
	GPU         int           `json:"gpu,omitempty"`
	SharedGPU   bool          `json:"sharedGPU,omitempty"` // by all attempts of the run
	Network     bool          `json:"network,omitempty"`
	Timeout     time.Duration `json:"timeout,omitempty"` // 0: none
	Grace       time.Duration `json:"grace"`             // between TERM and KILL
	// AbandonAfter is how long the attempt may go on without a Renew. It has ended by
	// then, grace included, so that nobody else can start a second copy.
	// 0: for ever.
	AbandonAfter time.Duration `json:"away,omitempty"`

	Outputs []OutputPattern `json:"outputs,omitempty"`
}

// Owner is whose attempt it is, and how a cluster accounts for it. The names are
// whatever people have typed.
type Owner struct {
	Team       string `json:"team,omitempty"`
	TeamName   string `json:"teamName,omitempty"`
	Person     string `json:"person,omitempty"`
	PersonName string `json:"personName,omitempty"`

	Account string `json:"account,omitempty"` // of Slurm, as the next two; empty: that of the settings
	QOS     string `json:"qos,omitempty"`
	WCKey   string `json:"wckey,omitempty"`
}

// Places are an attempt's folders.
type Places struct {
	Work   string // where the command works
	Inputs string // what is staged
	Temp   string // its temporary files

	Environment string // the software that was built for it, if there is any
}

// InputFolder is where the staged files are, in an attempt's folder.
const InputFolder = shim.InputFolder

// Places are the folders seen from outside.
func (s Spec) Places() Places {
	return Places{Work: s.Work(), Inputs: filepath.Join(s.Dir, InputFolder), Temp: filepath.Join(s.Dir, shim.TempFolder), Environment: s.Environment}
}

// Work is the folder that the command works in, seen from outside.
func (s Spec) Work() string { return filepath.Join(s.Dir, shim.WorkFolder) }

// Handle finds an attempt again. It can be stored. A driver takes a handle with another
// fence than that of its attempt for one of an attempt that is not there.
type Handle struct {
	Driver string `json:"driver"`
	Key    Key    `json:"key"`
	Fence  string `json:"fence"`
	ID     string `json:"id"` // the engine's own name for it
}

// Capabilities is what a driver can do on its machine or cluster.
type Capabilities struct {
	Ready   bool   // whether Submit accepts anything
	Problem string // when not: a sentence that says what to do

	// TaskPlaces is where the command finds its folders; nothing there means that it
	// sees those of Spec.Places themselves.
	TaskPlaces     Places
	InputsReadOnly bool   // a command cannot change what is staged
	Images         bool   // Spec.Root is honoured
	NoImages       string // when not: a sentence that says what to do
	NoEnvironments string // why Spec.Environment is not honoured; empty when it is
	System         string // names the programs that a task finds without an image
	VCPU           float64
	MemoryBytes    int64
	GPU            int
	ForgetsAfter   time.Duration // how long a snapshot may leave an attempt out that is there
	NotEnforced    []string      // limits that are asked for but not held, as words: "cpu", "memory", "network", "file size"
}

// Driver executes attempts. All methods may be called at the same time.
type Driver interface {
	Capabilities(ctx context.Context) (Capabilities, error)

	// Submit accepts an attempt and returns before it ends, often before it
	// starts. A second call with the same key and fence changes nothing and
	// returns the same handle; with another fence it is a fault.KindConflict. An
	// attempt whose permit has run out by the time that it would start does not.
	Submit(ctx context.Context, p Permit, s Spec) (Handle, error)

	// Snapshot lists every attempt that was submitted and not released,
	// including those of an earlier life of this process. It may be some seconds
	// behind on what other servers have submitted.
	Snapshot(ctx context.Context) ([]Status, error)

	// Refresh returns when a Snapshot lists every attempt that any server had
	// submitted before the call.
	Refresh(ctx context.Context) error

	// Stop ends an attempt: TERM to the whole tree, KILL after the grace. It
	// returns at once; a Snapshot shows when it has ended. Stopping what has
	// ended, or was never there, is no error.
	Stop(ctx context.Context, p Permit, h Handle, grace time.Duration) error

	// Renew says that attempts are wanted: they end when nobody renews them, as
	// Spec.AbandonAfter says. Those whose permits have run out are left out. Whoever has
	// taken a run over adopts its attempts by that: from then on, no order under an earlier
	// fence of the run counts.
	Renew(ctx context.Context, list ...Renewal) error

	// Logs is what the command has written so far, from offset on. It ends
	// where the log ends at the moment, or where something is missing; the caller
	// closes it. The end of a log of which something is missing is there once the
	// attempt has ended.
	Logs(ctx context.Context, h Handle, offset int64) (Log, error)

	// Release forgets an attempt that has ended and removes its folder. It
	// refuses, with fault.KindConflict, one that still runs. It may be called
	// twice.
	Release(ctx context.Context, p Permit, h Handle) error
}

// Preparer is a driver that makes the folders of its attempts.
type Preparer interface {
	// Prepare makes an attempt's folder, with an empty work/ in it.
	Prepare(ctx context.Context, k Key) error
}

// Watcher is a driver that reports changes. A report is a hint: it may come
// twice, and is dropped when the reader is slow.
type Watcher interface {
	// Watch ends its channel when ctx ends.
	Watch(ctx context.Context) <-chan Status
}

// Freezer is a driver whose attempts write to the server's disk. It halts them
// while the server makes room there.
type Freezer interface {
	// Freeze halts all attempts until Thaw and starts none meanwhile. It returns
	// what each takes up, when none of them writes any more. One that is in the
	// middle of a long write is not waited for longer than some seconds. Where they
	// cannot be frozen it may return what they take up with the error.
	Freeze(ctx context.Context) ([]Size, error)
	// Evict ends an attempt for the space that it takes up, frozen or not, and
	// returns when its files are removed. Its reason is Evicted.
	Evict(ctx context.Context, id string) error
	// Thaw lets the attempts go on. It may be called without a Freeze.
	Thaw(ctx context.Context) error
}

// Size is what an attempt takes up on the disk.
type Size = shim.Size

// Meter is a driver that knows what a running attempt uses.
type Meter interface {
	// Usage is the last sample; a fault.KindNotFound while there is none.
	Usage(ctx context.Context, h Handle) (Usage, error)
	// Marks say when, and on which stream, the log from offset on was
	// written.
	Marks(ctx context.Context, h Handle, offset int64) ([]LogMark, error)
}
