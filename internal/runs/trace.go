package runs

import (
	"context"
	"encoding/json"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// TraceStatus is how an attempt stands, in the words of Nextflow's trace.
type TraceStatus string

// The words.
const (
	TraceSubmitted TraceStatus = "SUBMITTED"
	TraceRunning   TraceStatus = "RUNNING"
	TraceCompleted TraceStatus = "COMPLETED"
	TraceFailed    TraceStatus = "FAILED"
	TraceAborted   TraceStatus = "ABORTED"
	TraceCached    TraceStatus = "CACHED"
)

// TraceTask is one attempt of a task as a row of a trace. What is empty is not known.
type TraceTask struct {
	ID         int // of the task, in its run
	Attempt    int
	Node       string // its step
	Shard      int    // of the step
	Hash       string
	NativeID   string // by which its executor knows it
	Process    string // the name of the step
	Tag        string // what tells it from the other tasks of its step
	Item       string // of a step that runs once per item: its value, as JSON
	Status     TraceStatus
	Exit       *int
	Submit     time.Time
	Start      time.Time
	Complete   time.Time
	CPUPercent *float64
	PeakMemory int64
	CPUs       *float64
	Memory     *int64 // bytes that it asked for
	Disk       *int64
	Time       time.Duration // that it might take
	Read       *int64        // bytes
	Written    *int64
	Container  string
	Queue      string
	Host       string
	WorkDir    string
}

// Name is what Nextflow calls a task: its process, and its tag in parentheses.
func (t TraceTask) Name() string {
	if t.Tag == "" {
		return t.Process
	}
	return t.Process + " (" + t.Tag + ")"
}

// Trace gives each attempt of the tasks of a run of the caller's team, step by step, and
// behind them those of the pipeline that a step launches.
func (s *Service) Trace(ctx context.Context, caller access.Caller, id ids.Run) (func(context.Context, func(TraceTask) error) error, error) {
	r, err := s.Run(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, each func(TraceTask) error) error { return s.trace(ctx, r, each) }, nil
}

func (s *Service) trace(ctx context.Context, r Run, each func(TraceTask) error) error {
	if r.Kind == Reported {
		return s.reported.Trace(ctx, r, each)
	}
	known, err := s.details.NodesOf(ctx, r.ID)
	if err != nil {
		return err
	}
	g, _ := graph.Salvage(r.Definition)
	before := 0 // tasks of the steps before
	for _, n := range NodesIn(r, known) {
		count := n.shardCount()
		if n.State == lifecycle.NodePending {
			count = 0
		}
		step, _ := g.Node(n.ID)
		if err := s.traceNode(ctx, r, n, step, before, count, each); err != nil {
			return err
		}
		before += count
	}
	if r.Engine == "" {
		return nil
	}
	return s.reported.Trace(ctx, r, func(t TraceTask) error {
		t.ID += before
		return each(t)
	})
}

const tracedAtOnce = 500 // items of a step that are read together

func (s *Service) traceNode(ctx context.Context, r Run, n Node, step *graph.Node, before, count int, each func(TraceTask) error) error {
	for from := 0; from < count; from += tracedAtOnce {
		shards := make([]int, min(tracedAtOnce, count-from))
		for i := range shards {
			shards[i] = from + i
		}
		attempts, err := s.shards.AttemptsOf(ctx, r.ID, n.ID, shards)
		if err != nil {
			return err
		}
		for _, a := range attempts {
			t := n.traced(a, step, r.Status.Terminal())
			t.ID = before + a.Shard + 1
			if err := each(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// traced is an attempt as a row; over says that its run has ended.
func (n Node) traced(a Attempt, step *graph.Node, over bool) TraceTask {
	t := TraceTask{
		Attempt: a.Number, Node: n.ID, Shard: a.Shard, NativeID: a.Job, Process: n.ID, Status: a.traceStatus(over), Exit: a.ExitCode, Submit: a.StartedAt, Start: a.BeganAt,
		Complete: a.EndedAt, PeakMemory: a.Peak, Host: a.Machine,
	}
	if t.Start.IsZero() && t.Status != TraceSubmitted && !a.Reused() {
		t.Start = a.StartedAt
	}
	if !t.Start.IsZero() && !t.Complete.IsZero() && t.Start.After(t.Complete) {
		t.Start = t.Complete // by the clock of another machine
	}
	if a.Memory > 0 {
		t.Memory = &a.Memory
	}
	if n.Shards != nil {
		t.Tag, t.Item = tagOfItem(a.Item, a.Shard), a.Item
	}
	if took := t.Complete.Sub(t.Start); n.Shards == nil && n.Attempt == 1 && n.CPU > 0 && !t.Start.IsZero() && took > 0 {
		percent := 100 * n.CPU.Seconds() / took.Seconds()
		t.CPUPercent = &percent
	}
	if step != nil {
		t.Container, t.Time = step.Image, step.Timeout
		if cpus := step.Resources.VCPU; cpus > 0 {
			t.CPUs = &cpus
		}
	}
	return t
}

func (a Attempt) traceStatus(over bool) TraceStatus {
	switch {
	case a.Reused():
		return TraceCached
	case a.State == AttemptSucceeded:
		return TraceCompleted
	case a.State == AttemptFailed:
		return TraceFailed
	case a.State == AttemptStarted && !over && a.Job != "" && a.BeganAt.IsZero():
		return TraceSubmitted // it waits for a place in a cluster
	case a.State == AttemptStarted && !over:
		return TraceRunning
	}
	return TraceAborted
}

const maxTag = 200 // characters

// tagOfItem is what people know an item by: the name of a file, a short text, or its number.
func tagOfItem(item string, index int) string {
	var text string
	if json.Unmarshal([]byte(item), &text) != nil {
		text = string(addresses.ShownIn(json.RawMessage(item)))
	} else if addresses.Is(text) {
		text = addresses.Address{URL: text}.Name()
	} else if strings.HasPrefix(text, "teams/") {
		text = path.Base(text)
	}
	if letters := []rune(text); len(letters) > maxTag {
		text = string(letters[:maxTag])
	}
	if text == "" {
		return strconv.Itoa(index)
	}
	return text
}
