package reported

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// Picture is what is known of a run: all its steps, and of its tasks those that a
// report names, with the other attempts of the same tasks.
type Picture struct {
	Run       runs.Run
	Step      string // of the run, whose pipeline this is; empty: it is of the run as a whole
	Finished  bool   // its own report ended it
	LastSeq   int64  // of its reports
	Tasks     int    // attempts in all
	Texts     int64  // bytes that it keeps
	TeamTexts int64  // that its team keeps; more where its storage has no room for as many as it may
	LeftOut   string
	Nodes     map[string]*Node // by id
	Edges     map[[2]string]bool
	Rows      map[string]*Row // by the id of the attempt
}

// Row is an attempt of a task as it is kept.
type Row struct {
	Task
	NodeID      string
	Shard       int  // the task's number: that of its first attempt
	Newest      bool // of the attempts of its task
	ScriptSize  int64
	MessageSize int64

	counted kind          // the state under which the node of its run counts it
	cpu     time.Duration // what that node counts of its CPU time
	changed bool          // since it was read
}

// Loaded takes note of how a row was when it was read.
func (r *Row) Loaded() { r.counted, r.cpu, r.changed = r.kind(), r.CPU, false }

// Counted is as what its node counts an attempt; empty: another followed.
func (r *Row) Counted() string { return string(r.counted) }

// AsAttempt is an attempt as every run has them. One that failed has the last lines of a
// message.
func (r *Row) AsAttempt(message string) runs.Attempt {
	a := runs.Attempt{
		Node: r.NodeID, Shard: r.Shard, Number: r.Attempt, ExitCode: r.ExitCode, Peak: r.Peak,
		StartedAt: r.StartedAt, EndedAt: r.EndedAt, State: runs.AttemptStarted,
	}
	if a.StartedAt.IsZero() {
		a.StartedAt = r.SubmittedAt
	}
	switch r.State {
	case Succeeded:
		a.State = runs.AttemptSucceeded
	case Cached:
		a.State, a.Reason = runs.AttemptSucceeded, runs.ReusedReason
	case Failed:
		a.State, a.Reason, a.Message = runs.AttemptFailed, string(lifecycle.NodeFailedCode), LastLines(plain(message))
	case Cancelled:
		a.State = runs.AttemptCancelled
	}
	return a
}

// kind is as what a node counts its tasks.
type kind string

const (
	waiting   kind = "waiting"
	active    kind = "running"
	done      kind = "succeeded"
	reused    kind = "cached"
	failed    kind = "failed"
	ignored   kind = "ignored"
	retrying  kind = "retrying"
	cancelled kind = "cancelled"
)

// kind is empty for an attempt that was followed by another.
func (r *Row) kind() kind {
	if !r.Newest {
		return ""
	}
	switch r.State {
	case Running:
		return active
	case Succeeded:
		return done
	case Cached:
		return reused
	case Cancelled:
		return cancelled
	case Failed:
		switch {
		case r.WillRetry:
			return retrying
		case r.Ignored:
			return ignored
		}
		return failed
	}
	return waiting
}

// Node is a step as it is kept.
type Node struct {
	ID        string
	Name      string
	Place     int // in the engine's own order; -1: not said
	First     int // the lowest number of its tasks; -1: none
	Expected  *int
	Closed    bool
	Counts    Counts
	Peak      int64
	CPU       time.Duration
	ExitCode  *int // the highest of its failures
	Attempt   int  // the highest
	StartedAt time.Time
	EndedAt   time.Time
	State     lifecycle.NodeState

	changed bool // since it was read
}

// Counts are how many tasks of a step stand how.
type Counts map[kind]int

// Text is how counts are kept.
func (c Counts) Text() string {
	text, _ := json.Marshal(c) // numbers by words
	return string(text)
}

// ReadCounts reads what Text wrote.
func ReadCounts(text string) (c Counts, err error) {
	c = Counts{}
	return c, json.Unmarshal([]byte(text), &c)
}

func (c Counts) total() (n int) {
	for _, some := range c {
		n += some
	}
	return n
}

// Change is what a report has changed.
type Change struct {
	Rows     []*Row
	Nodes    []*Node
	Redraw   bool // the definition is another
	Edges    bool // there are more
	Events   []runs.Event
	Log      []byte
	Texts    int64 // bytes more
	Tasks    int   // attempts more
	Progress int
	Done     int // nodes that have ended
	Ending   *runs.Ending
	LeftOut  string
}

// Dropped reports whether a run takes no reports any more. One that its own report
// has ended takes for a moment what the end has overtaken.
func (p *Picture) Dropped(now time.Time) bool {
	return p.Run.Status.Terminal() && !(p.Finished && now.Before(p.Run.FinishedAt.Add(late)))
}

// Sorted are the steps in the order of the engine, those that it did not name by
// their first task.
func (p *Picture) Sorted() []*Node {
	list := make([]*Node, 0, len(p.Nodes))
	for _, n := range p.Nodes {
		list = append(list, n)
	}
	rank := func(n int) int { // what is not known comes last
		if n < 0 {
			return 1 << 40
		}
		return n
	}
	slices.SortFunc(list, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(rank(a.Place), rank(b.Place)), cmp.Compare(rank(a.First), rank(b.First)), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Silence says how a run ends of which nothing was heard for too long.
func Silence(heard time.Time) runs.Ending {
	return runs.Ending{
		Status: lifecycle.Interrupted, Code: lifecycle.Silent,
		Message: "nothing was heard of the run since " + heard.UTC().Format("2006-01-02 15:04") + " UTC",
	}
}

// Row is a step as every run has them.
func (n *Node) Row() runs.Node {
	total := n.Counts.total()
	r := runs.Node{
		ID: n.ID, Name: n.Name, State: n.State, Attempt: n.Attempt, PeakMemory: n.Peak, CPU: n.CPU, StartedAt: n.StartedAt,
		Shards: &total, ShardsDone: n.Counts[done] + n.Counts[reused] + n.Counts[ignored] + n.Counts[failed], ShardsFailed: n.Counts[failed],
		Cached: total > 0 && n.Counts[reused] == total, ShardsReused: n.Counts[reused],
	}
	if n.State == lifecycle.NodeFailed {
		r.ExitCode = n.ExitCode
	}
	if n.State.Terminal() {
		r.FinishedAt = n.EndedAt
	}
	if n.Expected != nil && *n.Expected > total {
		r.Shards = n.Expected
	}
	return r
}
