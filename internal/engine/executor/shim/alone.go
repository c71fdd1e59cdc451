package shim

import (
	"time"

	"golang.org/x/sys/unix"
)

// Alone is the attempt of this process.
type Alone struct{ task *task }

// NewAlone makes one. What the attempt uses is reported from time to time, on the
// goroutine that also keeps its log.
func NewAlone(l Launch, sampled func(Usage)) *Alone {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // tree finds what forks away from the command
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	return &Alone{newTask(l, newShim(sampled))}
}

// Run returns when nothing of the attempt is left.
func (a *Alone) Run() Exit { return a.task.execute() }

// NeverStarted is the end of an attempt that could not even begin.
func (a *Alone) NeverStarted(why error) Exit { return a.task.neverStarted(why) }

// Stop ends the command as its server wishes, Preempt as the machine does.
func (a *Alone) Stop(grace time.Duration) { a.task.stop(grace) }

// Preempt ends the command because the machine asks for it.
func (a *Alone) Preempt() {
	a.task.shim.shutdown.Store(true)
	a.task.shim.wake()
}

// Freeze halts the command until Thaw. One that has not begun is halted when it has.
func (a *Alone) Freeze() { a.freeze(true) }

// Thaw lets the command go on.
func (a *Alone) Thaw() { a.freeze(false) }

func (a *Alone) freeze(frozen bool) {
	if a.task.shim.frozen.Swap(frozen) != frozen {
		a.task.shim.wake()
	}
}

// Evict ends the command for the space that it takes up, and removes its files.
func (a *Alone) Evict() {
	a.task.evicted.Store(true)
	a.task.stop(0)
}

// AwaitEmpty returns when no process is left in the control group of the attempt, which
// can serve another one then.
func (a *Alone) AwaitEmpty() {
	for !a.task.launch.clear() {
	}
}

// Renewed says how often the server has said that it wants the attempt.
func (a *Alone) Renewed(times int64) { a.task.renewals.Store(times) }

// SyncLog brings the log to where others can read it. It is called with a sample.
func (a *Alone) SyncLog() { a.task.log.out.Sync() }
