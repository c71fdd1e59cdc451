// Package failures says why an attempt failed, for people and for the rules of
// retries. It is pure: what is known of the attempt comes in.
package failures

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/produced"
)

// Failure is why an attempt failed, for people and for the retry rules.
type Failure struct {
	Code    lifecycle.ErrorCode
	Why     graph.Reason // empty: not retried
	Message string
}

// Attempt is what is known of one that failed.
type Attempt struct {
	Node      *graph.Node
	Status    executor.Status
	RAMGB     float64       // that it was given
	Disk      int64         // bytes that it could write
	TimeLimit time.Duration // of the run, by its plan; 0: none
	Took      time.Duration // of the run
	LogTail   func() string // the last of its log
	Cause     string        // the task of a launched pipeline that failed; empty: none is known
}

// TimeLimit says that a run took longer than its plan allows.
func TimeLimit(limit time.Duration) string {
	return fmt.Sprintf("the run took longer than the %s that the team's plan allows", limit)
}

// Explain says why an attempt failed.
func Explain(a Attempt) Failure {
	node, s := a.Node.Title(), a.Status
	switch s.Reason {
	case executor.OutOfMemory:
		return Failure{lifecycle.OutOfMemory, graph.OnOOM, fmt.Sprintf("%s ran out of its %.3g GB of memory", node, a.RAMGB)}
	case executor.TimedOut:
		return a.timedOut()
	case executor.OutputMissing:
		if s.Exit.Refused != "" {
			return Failure{lifecycle.OutputMissing, graph.OnError, fmt.Sprintf("%s: an output can't be stored: %s", node, s.Exit.Refused)}
		}
		return Failure{lifecycle.OutputMissing, graph.OnError, fmt.Sprintf("%s did not produce %s", node, produced.MissingPaths(a.Node, s.Exit.Missing))}
	case executor.ImageUnavailable:
		return Failure{lifecycle.ImageUnavailable, "", fmt.Sprintf("%s: its image can't be pulled: %s", node, s.Detail)}
	case executor.StartFailed:
		return Failure{lifecycle.NodeFailedCode, graph.OnError, fmt.Sprintf("%s cannot start: %s", node, s.Detail)}
	case executor.Signaled:
		return Failure{lifecycle.NodeFailedCode, graph.OnError, fmt.Sprintf("%s was ended by signal %d", node, s.Exit.Signal)}
	case executor.ExitedNonZero:
		said := executor.ExitMessage(node, s.Exit.Code, a.LogTail())
		if a.Cause != "" {
			said += ". " + a.Cause
		}
		return Failure{lifecycle.NodeFailedCode, graph.OnError, said}
	case executor.Evicted:
		return Failure{lifecycle.DiskFull, graph.OnError, fmt.Sprintf("%s was stopped: the server's disk was nearly full (--min-free-disk), and this step used much of it", node)}
	case executor.OutOfDisk:
		return Failure{lifecycle.DiskFull, graph.OnError, fmt.Sprintf("%s wrote more than the %s of disk, or more files, than a task may have (--task-disk)", node, produced.SizeText(a.Disk))}
	}
	return Failure{lifecycle.NodeFailedCode, graph.OnError, fmt.Sprintf("%s failed: %s %s", node, s.Reason, s.Detail)}
}

// timedOut distinguishes whose limit it was: the plan's, the step's or the
// cluster's.
func (a Attempt) timedOut() Failure {
	node, limit := a.Node.Title(), a.Node.Timeout
	if a.TimeLimit > 0 && (limit == 0 || a.Took >= a.TimeLimit) {
		return Failure{lifecycle.PlanTimeLimit, "", TimeLimit(a.TimeLimit)}
	}
	if limit == 0 {
		return Failure{lifecycle.NodeTimeout, graph.OnTimeout, fmt.Sprintf("%s took too long: %s", node, a.Status.Detail)}
	}
	return Failure{lifecycle.NodeTimeout, graph.OnTimeout, fmt.Sprintf("%s took longer than its %s", node, limit)}
}
