package executor

import "time"

// Phase is how far an attempt has come.
type Phase string

// The phases. Ended and Gone are final.
const (
	Pending Phase = "pending"
	Running Phase = "running"
	Ended   Phase = "ended" // how is known
	Gone    Phase = "gone"  // nothing runs, and how it ended is not known
)

// Final reports whether the attempt will not move again by itself.
func (p Phase) Final() bool { return p == Ended || p == Gone }

// Reason is why an attempt is where it is. The set is closed and ours: what is
// tried again depends on it, never on the words of an engine.
type Reason string

// The reasons, by the phase they belong to.
const (
	Queued        Reason = "queued"        // pending: waits for capacity
	Unschedulable Reason = "unschedulable" // pending: waits for what is not there
	Starting      Reason = "starting"      // pending

	Executing Reason = "executing" // running
	Stopping  Reason = "stopping"  // running: asked to end

	ExitedZero       Reason = "exited_zero" // ended, and every output that is not optional is there
	ExitedNonZero    Reason = "exited_non_zero"
	OutputMissing    Reason = "output_missing" // exited with zero all the same
	Signaled         Reason = "signaled"
	OutOfMemory      Reason = "out_of_memory"
	OutOfDisk        Reason = "out_of_disk"
	Evicted          Reason = "evicted"  // took up most of a disk that was nearly full
	NoSpace          Reason = "no_space" // failed while the disk was full, whoever filled it
	TimedOut         Reason = "timed_out"
	Cancelled        Reason = "cancelled"
	Abandoned        Reason = "abandoned" // not renewed in time
	Preempted        Reason = "preempted" // the machine took it back
	StartFailed      Reason = "start_failed"
	ImageUnavailable Reason = "image_unavailable"

	NeverStarted Reason = "never_started" // gone: the same attempt may be submitted again
	NodeLost     Reason = "node_lost"     // gone
	EngineForgot Reason = "engine_forgot" // gone
	Lost         Reason = "lost"          // gone: it ran, and left no record
)

// Status is the status of an attempt, as its driver sees it.
type Status struct {
	Handle
	Phase  Phase
	Reason Reason
	Detail string // for people: why it could not start, what it waits for
	Host   string // where it runs, if known
	Exit   *Exit  // the record, when it was written under this fence

	// Job is the engine's own number for it, and Inspect the command with which a
	// person looks at it there; empty where there is none.
	Job, Inspect string

	At time.Time // when it came into its phase

	// SeenAt is when an attempt that runs, or is gone, was last known to be at work; zero
	// where the driver would know at once that it is not.
	SeenAt time.Time
	// Suspended are the times in which the platform had suspended it, up to SeenAt.
	Suspended []Span
}
