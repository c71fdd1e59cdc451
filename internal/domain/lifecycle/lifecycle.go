// Package lifecycle knows the states of runs and nodes, which moves between
// them are allowed, and the kinds of events that tell of them.
package lifecycle

// Status is the state of a run.
type Status string

// The states of a run.
const (
	Queued      Status = "queued"
	Running     Status = "running"
	Completed   Status = "completed"
	Failed      Status = "failed"      // the workflow's own doing
	Cancelled   Status = "cancelled"   // somebody's wish
	Interrupted Status = "interrupted" // the platform's doing
)

// Statuses are all of them, in the order of a run's life.
func Statuses() []Status {
	return []Status{Queued, Running, Completed, Failed, Cancelled, Interrupted}
}

// Terminal reports whether a run in this state will never move again.
func (s Status) Terminal() bool {
	switch s {
	case Completed, Failed, Cancelled, Interrupted:
		return true
	}
	return false
}

var moves = map[Status][]Status{
	Queued:  {Running, Cancelled, Interrupted},
	Running: {Queued, Completed, Failed, Cancelled, Interrupted},
}

// MayBecome reports whether a run in this state may move to the other: a
// queued one is taken or called off, a running one ends or goes back to the
// queue when its worker is lost, a terminal one stays.
func (s Status) MayBecome(next Status) bool {
	for _, m := range moves[s] {
		if m == next {
			return true
		}
	}
	return false
}

// NodeState is the state of a node in a run.
type NodeState string

// The states of a node.
const (
	NodePending   NodeState = "pending" // waits for others
	NodeQueued    NodeState = "queued"  // waits for room
	NodeRunning   NodeState = "running"
	NodeRetrying  NodeState = "retrying" // waits to be tried again
	NodeSucceeded NodeState = "succeeded"
	NodeFailed    NodeState = "failed"
	NodeSkipped   NodeState = "skipped"
	NodeCancelled NodeState = "cancelled"
)

// Terminal reports whether the node will not move again in this run.
func (s NodeState) Terminal() bool {
	switch s {
	case NodeSucceeded, NodeFailed, NodeSkipped, NodeCancelled:
		return true
	}
	return false
}

// ErrorCode says why a run did not complete.
type ErrorCode string

// The codes. The workflow answers for those up to environment_failed, the
// platform for the others.
const (
	NodeFailedCode    ErrorCode = "node_failed"
	OutOfMemory       ErrorCode = "oom"
	NodeTimeout       ErrorCode = "node_timeout"
	ImageUnavailable  ErrorCode = "image_unavailable"
	SourceUnavailable ErrorCode = "source_unavailable"
	InputMissing      ErrorCode = "input_missing"
	OutputMissing     ErrorCode = "output_missing"
	OutputMismatch    ErrorCode = "output_mismatch"
	InputUnreachable  ErrorCode = "input_unreachable"
	InputChanged      ErrorCode = "input_changed"
	DiskFull          ErrorCode = "disk_full"
	EnvironmentFailed ErrorCode = "environment_failed"

	WorkerLost       ErrorCode = "worker_lost"
	PlanTimeLimit    ErrorCode = "plan_time_limit"
	BudgetExhausted  ErrorCode = "budget_exhausted"
	QuotaExhausted   ErrorCode = "quota_exhausted"
	CreditsExhausted ErrorCode = "credits_exhausted"
	Silent           ErrorCode = "silent" // a reported run of which nothing is heard
	Internal         ErrorCode = "internal"
)

// Ends is the state in which a run ends for this reason.
func (c ErrorCode) Ends() Status {
	switch c {
	case WorkerLost, PlanTimeLimit, BudgetExhausted, QuotaExhausted, CreditsExhausted, Silent, Internal:
		return Interrupted
	}
	return Failed
}

// EventType is what an event tells.
type EventType string

// The events of a run's life.
const (
	RunQueued          EventType = "run.queued"
	RunStarted         EventType = "run.started"
	RunRequeued        EventType = "run.requeued"
	RunResumed         EventType = "run.resumed"
	RunCancelRequested EventType = "run.cancel_requested"
	NodeStarted        EventType = "node.started"
	NodeRetried        EventType = "node.retrying"
	NodeDone           EventType = "node.succeeded"
	NodeCached         EventType = "node.cached"
	NodeFailedEvent    EventType = "node.failed"
	NodeSkippedEvent   EventType = "node.skipped"
	OutputVerified     EventType = "output.verified"
	RunCompleted       EventType = "run.completed"
	RunFailed          EventType = "run.failed"
	RunCancelled       EventType = "run.cancelled"
	RunInterrupted     EventType = "run.interrupted"
)

// Ended is the event that a run has reached a terminal state.
func Ended(s Status) EventType { return EventType("run." + s) }

// Level is how much an event matters to somebody who skims.
type Level string

// The levels.
const (
	Info  Level = "info"
	Warn  Level = "warning"
	Error Level = "error"
)

// Level is what this kind of event is shown as.
func (t EventType) Level() Level {
	switch t {
	case RunFailed, RunInterrupted, NodeFailedEvent:
		return Error
	case RunRequeued, NodeRetried, RunCancelled, RunCancelRequested:
		return Warn
	}
	return Info
}
