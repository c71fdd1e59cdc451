package pipelines

import (
	"bytes"
	"encoding/json"
	"path"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/runs/reported"
)

// eventsPath is where a command finds EVENTS_FILE.
var eventsPath = path.Join(shim.TempFolder, EventsFile)

const maxNumber = 1<<31 - 1

// event is a line of our logger plugin for Snakemake, as the general intake of
// reported runs takes it.
type event struct {
	At    time.Time
	Graph *struct {
		Nodes []struct {
			Name     string
			Expected *int
		}
		Edges []struct{ From, To string }
	}
	Task     *task
	Progress *reported.Progress
}

type task struct {
	Task                                       *int
	Node, Name, Message, Script                string
	Attempt                                    int
	Status                                     reported.State
	ExitCode                                   *int
	WillRetry                                  bool
	StartedAt, FinishedAt                      time.Time
	WorkDir, Container, Host, NativeID         string
	CPUs, CPUPercent                           *float64
	MemoryBytes, PeakMemoryBytes, WrittenBytes *int64
}

// events takes lines of JSON. One that is none says nothing.
func (b *batch) events(text []byte) (used int) {
	for b.room() {
		line, _, whole := bytes.Cut(text[used:], []byte("\n"))
		if !whole {
			break
		}
		used += len(line) + 1
		var e event
		if json.Unmarshal(line, &e) == nil && e.says() {
			if !b.say() {
				break
			}
			b.event(e)
		}
	}
	return used
}

func (e event) says() bool {
	return e.Graph != nil || e.Progress != nil || e.Task != nil && e.Task.sound()
}

// sound reports whether a task is one that can be told from others.
func (t *task) sound() bool {
	return t.Task != nil && *t.Task >= 0 && *t.Task <= maxNumber && t.Attempt >= 0 && t.Attempt <= maxNumber && t.Status.Known() &&
		(t.ExitCode == nil || *t.ExitCode >= -maxNumber && *t.ExitCode <= maxNumber)
}

func (b *batch) event(e event) {
	r := &b.report
	if g := e.Graph; g != nil {
		for _, n := range g.Nodes {
			if n.Expected != nil && (*n.Expected < 0 || *n.Expected > maxNumber) {
				n.Expected = nil
			}
			r.Nodes = append(r.Nodes, reported.NodeReport{Name: n.Name, Expected: n.Expected, Ordered: true})
		}
		for _, e := range g.Edges {
			r.Edges = append(r.Edges, [2]string{e.From, e.To})
		}
	}
	if p := e.Progress; p != nil && p.Done >= 0 && p.Total > 0 && p.Total <= maxNumber {
		r.Progress = p
	}
	if e.Task != nil {
		at := e.At
		if at.IsZero() {
			at = b.now
		}
		t := b.taskOf(e.Task)
		t.SetTimes(at)
		r.Tasks = append(r.Tasks, t)
	}
}

func (b *batch) taskOf(in *task) reported.Task {
	number, attempt := strconv.Itoa(*in.Task), max(1, in.Attempt)
	t := reported.Task{
		// Lines are taken once and in order, so that the later one is the newer.
		ID: number + "." + strconv.Itoa(attempt), Chain: number, Node: in.Node, Number: *in.Task, Attempt: attempt, State: in.Status, Version: int64(b.places.Lines),
		WillRetry: in.WillRetry, Name: in.Name, ExitCode: in.ExitCode, Message: in.Message, Script: in.Script, StartedAt: in.StartedAt, EndedAt: in.FinishedAt,
		Details: reported.Details{
			WorkDir: in.WorkDir, Container: in.Container, Host: in.Host, NativeID: in.NativeID, CPUs: in.CPUs, CPUPercent: in.CPUPercent,
			Memory: in.MemoryBytes, Written: in.WrittenBytes,
		},
	}
	if in.PeakMemoryBytes != nil {
		t.Peak = *in.PeakMemoryBytes
	}
	return t
}
