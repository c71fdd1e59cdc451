package reported

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// state is what a step has come to; over says that the run has ended.
func (n *Node) state(over bool) lifecycle.NodeState {
	c := n.Counts
	total, open := c.total(), c[active]+c[waiting]+c[retrying]
	switch {
	case over:
		return n.final(total, open)
	case c[active] > 0:
		return lifecycle.NodeRunning
	case c[retrying] > 0:
		return lifecycle.NodeRetrying
	case c[waiting] > 0 && n.StartedAt.IsZero():
		return lifecycle.NodeQueued
	case c[waiting] > 0: // a further task of a step that has begun
		return lifecycle.NodeRunning
	case total == 0 && !n.Closed:
		return lifecycle.NodePending
	case n.Closed || n.Expected != nil && total >= *n.Expected:
		return n.final(total, 0)
	case c[failed] > 0:
		return lifecycle.NodeFailed
	}
	return lifecycle.NodeRunning // more tasks may come
}

func (n *Node) final(total, open int) lifecycle.NodeState {
	switch {
	case n.Counts[failed] > 0:
		return lifecycle.NodeFailed
	case open > 0:
		return lifecycle.NodeCancelled
	case total == 0:
		return lifecycle.NodeSkipped
	case n.Counts[cancelled] > 0:
		return lifecycle.NodeCancelled
	}
	return lifecycle.NodeSucceeded
}

// Close is how the steps of a run stand once it has ended, and what there is to
// tell of those that had not.
func (p *Picture) Close() (changed []*Node) {
	for _, n := range p.Sorted() {
		if s := n.state(true); s != n.State {
			n.State, n.changed = s, true
			changed = append(changed, n)
		}
	}
	return changed
}

// steps brings the states of steps up to date and tells of those that moved. A
// step may go back from succeeded to running: another task of it has come.
func (m *merging) steps() {
	over := m.over || m.Ending != nil
	for _, n := range m.Picture.Sorted() {
		if !n.changed && !over {
			if n.State.Terminal() {
				m.Done++
			}
			continue
		}
		was := n.State
		n.State = n.state(over)
		if n.State.Terminal() {
			m.Done++
		}
		if n.State == was && !n.changed {
			continue
		}
		m.Change.Nodes = append(m.Change.Nodes, n)
		if !m.over && n.State != was {
			m.moved(n, was)
		}
	}
}

// moved tells of a step that has come to another state.
func (m *merging) moved(n *Node, was lifecycle.NodeState) {
	e := runs.Event{At: m.now, Node: n.ID, NodeName: n.Name}
	begun := was == lifecycle.NodePending || was == lifecycle.NodeQueued
	started := e
	started.Type, started.Message = lifecycle.NodeStarted, n.Name+" has started"
	switch n.State {
	case lifecycle.NodeRunning, lifecycle.NodeRetrying:
		if begun {
			m.Events = append(m.Events, started)
		}
		return
	case lifecycle.NodeSucceeded:
		e.Type, e.Message = lifecycle.NodeDone, fmt.Sprintf("%s has completed: %s", n.Name, countOf(n.Counts.total(), "task"))
		if n.Counts[reused] == n.Counts.total() {
			e.Type, e.Message = lifecycle.NodeCached, n.Name+" was taken from an earlier run"
			begun = false
		}
	case lifecycle.NodeSkipped:
		e.Type, e.Message = lifecycle.NodeSkippedEvent, n.Name+" had nothing to do"
		begun = false
	default:
		return // failures are told one by one
	}
	if begun {
		m.Events = append(m.Events, started)
	}
	m.Events = append(m.Events, e)
}

func countOf(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// progress is how far the run is: by its own count, or by the tasks of its steps.
func (m *merging) progress() {
	if p := m.report.Progress; p != nil && p.Total > 0 {
		high, low := bits.Mul64(uint64(max(0, min(p.Done, p.Total))), 100)
		percent, _ := bits.Div64(high, low, uint64(p.Total))
		m.Progress = int(percent)
	} else if len(m.Picture.Nodes) > 0 && m.report.Progress == nil {
		sum := 0.0
		for _, n := range m.Picture.Nodes {
			sum += n.share()
		}
		m.Progress = int(100 * sum / float64(len(m.Picture.Nodes)))
	}
	m.Progress = max(m.Run.Progress, min(99, max(0, m.Progress)))
}

// share is how much of a step is done. One that may have more tasks never is.
func (n *Node) share() float64 {
	c := n.Counts
	total, ended := c.total(), c[done]+c[reused]+c[ignored]+c[failed]+c[cancelled]
	switch {
	case n.Closed && ended == total:
		return 1
	case n.Expected != nil && *n.Expected > 0:
		return float64(ended) / float64(max(total, *n.Expected))
	}
	return float64(ended) / float64(total+1)
}

func (m *merging) finish() {
	f := m.report.Finish
	if f == nil || m.over {
		return
	}
	e := runs.Ending{Status: f.Status, Message: f.Message}
	switch f.Status {
	case lifecycle.Failed:
		e.Code, e.Message = lifecycle.NodeFailedCode, cmp.Or(f.Message, "the run failed")
	case lifecycle.Completed:
		e.Message = cmp.Or(f.Message, "the run has completed")
	default:
		e.Message = cmp.Or(f.Message, "the run was cancelled where it ran")
	}
	m.Ending = &e
}

// log takes the texts whose numbers are greater than all before: sent again, they
// are not doubled.
func (m *merging) log() {
	newest := m.LastSeq
	for _, l := range m.report.Log {
		if l.Seq <= newest || l.Text == "" {
			continue
		}
		newest = l.Seq
		text := l.Text
		if text[len(text)-1] != '\n' {
			text += "\n"
		}
		if !m.room(int64(len(text))) {
			continue
		}
		m.Log = append(m.Log, text...)
		m.Change.Texts += int64(len(text))
	}
}

// result is what has changed, the failures of tasks before what follows from them.
func (m *merging) result() Change {
	c := m.Change
	c.Events = append(m.told, c.Events...)
	return c
}
