package shim

import (
	"time"

	"golang.org/x/sys/unix"
)

// Alone executes one attempt in this process, without a server to talk to.
type Alone struct{ task *task }

// NewAlone makes one. What the attempt uses is reported from time to time, on the
// goroutine that also keeps its log.
func NewAlone(l Launch, sampled func(Usage)) *Alone {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	return &Alone{newTask(l, &shim{commands: commands{running: map[int]*command{}}, watched: map[string]*task{}, alone: sampled})}
}

// Run returns when nothing of the attempt is left.
func (a *Alone) Run() Exit { return a.task.execute() }

// NeverStarted is the end of an attempt that could not even begin.
func (a *Alone) NeverStarted(why error) Exit { return a.task.neverStarted(why) }

// Stop ends the command as its server wishes, Preempt as the machine does.
func (a *Alone) Stop(grace time.Duration) { a.task.stop(grace) }

// Preempt ends the command because the machine asks for it.
func (a *Alone) Preempt() {
	a.task.shim.mu.Lock()
	defer a.task.shim.mu.Unlock()
	a.task.shim.shutdown = true
}

// Renewed says how often the server has said that it wants the attempt.
func (a *Alone) Renewed(times int64) { a.task.renewals.Store(times) }

// SyncLog brings the log to where others can read it. It is called with a sample.
func (a *Alone) SyncLog() { a.task.log.out.Sync() }
