package shim

import (
	"encoding/json"
	"time"
)

// Order is a message from the server to the shim. One of its fields is set, but for
// RunFence.
type Order struct {
	// RunFence is the fence of the run whose owner gives the order. The shim ignores an
	// order about an attempt that is older than an earlier one. 0: it has none, as those of
	// an earlier release.
	RunFence int64 `json:"runFence,omitempty"`

	Start   *Launch  `json:"start,omitempty"`
	Stop    *Stop    `json:"stop,omitempty"`
	Renew   []string `json:"renew,omitempty"` // attempts that are still wanted
	Release string   `json:"release,omitempty"`
	Leave   bool     `json:"leave,omitempty"` // if nothing runs
	// Freeze halts all commands until Thaw. A report with Frozen answers it.
	Freeze bool `json:"freeze,omitempty"`
	Thaw   bool `json:"thaw,omitempty"`
}

// Stop ends an attempt: TERM to its whole tree, KILL after the grace. A later
// one may shorten the grace.
type Stop struct {
	ID    string        `json:"id"`
	Grace time.Duration `json:"grace"`
	// Evict says that it is ended for the space that it takes up: its files are
	// removed before its end is reported.
	Evict bool `json:"evict,omitempty"`
}

// Report is a message from the shim to its server. One of its fields is set,
// but for Version.
type Report struct {
	Record *Record `json:"record,omitempty"`
	Sample *Sample `json:"sample,omitempty"`
	// Released names an attempt of which nothing is left.
	Released string `json:"released,omitempty"`
	// Frozen says that no command runs any more.
	Frozen *Frozen `json:"frozen,omitempty"`
	// Ready says that a server which has just come knows everything now, and
	// Version which shim it talks to.
	Ready   bool `json:"ready,omitempty"`
	Version int  `json:"version,omitempty"`
}

// Record is an attempt that was started and not released.
type Record struct {
	ID       string          `json:"id"`
	Fence    string          `json:"fence"`
	Metadata json.RawMessage `json:"about,omitempty"` // as its server said in the Launch
	Group    Cgroup          `json:"group,omitzero"`
	RunFence int64           `json:"runFence,omitempty"` // the highest of the orders about it

	Stopping bool  `json:"stopping,omitempty"`
	Exit     *Exit `json:"exit,omitempty"` // once it has ended
	Lost     bool  `json:"lost,omitempty"` // with the shim that ran it: nobody knows how it ended
}

// Frozen is what each command takes up that was frozen.
type Frozen struct {
	Sizes []Size `json:"sizes,omitempty"`
}

// Size is what an attempt takes up on the disk.
type Size struct {
	ID    string `json:"id"`
	Bytes int64  `json:"bytes"`
	Files int64  `json:"files"`
}

// Sample is what a running attempt uses.
type Sample struct {
	ID    string `json:"id"`
	Usage Usage  `json:"usage"`
}
