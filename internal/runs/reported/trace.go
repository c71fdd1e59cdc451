package reported

import (
	"cmp"
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// TracePlace is where an attempt stands in a trace.
type TracePlace struct {
	Shard   int
	Attempt int
	ID      string
}

// TraceStore reads attempts without their texts.
type TraceStore interface {
	// TracedTasks are the attempts of a run behind a place, by task and number.
	TracedTasks(ctx context.Context, id ids.Run, after TracePlace, limit int) ([]Row, error)
}

const tracedAtOnce = 500

// Trace gives each attempt of the tasks of a run, by task and number.
func (t Tasks) Trace(ctx context.Context, r runs.Run, each func(runs.TraceTask) error) error {
	for after := (TracePlace{Shard: -1}); ; {
		list, err := t.Store.TracedTasks(ctx, r.ID, after, tracedAtOnce)
		if err != nil {
			return err
		}
		for i := range list {
			if err := each(list[i].traced(r.Status.Terminal())); err != nil {
				return err
			}
		}
		if len(list) < tracedAtOnce {
			return nil
		}
		last := list[len(list)-1]
		after = TracePlace{last.Shard, last.Attempt, last.ID}
	}
}

// workHash finds the hash of a Nextflow task in the path of its folder.
var workHash = regexp.MustCompile(`/([0-9a-f]{2})/([0-9a-f]{6})[0-9a-f]*/?$`)

// traced is an attempt as a row of a trace; over says that its run has ended.
func (r *Row) traced(over bool) runs.TraceTask {
	d := r.Details
	t := runs.TraceTask{
		ID: r.Shard, Attempt: r.Attempt, Node: r.NodeID, Shard: r.Shard, NativeID: d.NativeID, Process: r.Node, Tag: r.Tag(), Status: r.traceStatus(over), Exit: r.ExitCode,
		Submit: r.SubmittedAt, Start: r.StartedAt, Complete: r.EndedAt, CPUPercent: d.CPUPercent, PeakMemory: r.Peak, CPUs: d.CPUs, Memory: d.Memory, Disk: d.Disk,
		Read: d.Read, Written: d.Written, Container: d.Container, Queue: d.Queue, Host: d.Host, WorkDir: d.WorkDir,
	}
	if d.TimeMs != nil {
		t.Time = time.Duration(min(*d.TimeMs, 1<<40)) * time.Millisecond
	}
	if m := workHash.FindStringSubmatch(d.WorkDir); m != nil {
		t.Hash = m[1] + "/" + m[2]
	}
	t.Submit = cmp.Or(t.Submit, t.Start)
	return t
}

// Tag is what tells a task from the others of its step: Nextflow's tag, which stands in
// parentheses behind the process, or Snakemake's wildcards.
func (t *Task) Tag() string {
	name, _ := strings.CutPrefix(t.Name, t.Node)
	name = strings.TrimSpace(name)
	if inner, ok := strings.CutPrefix(name, "("); ok && strings.HasSuffix(inner, ")") {
		return strings.TrimSuffix(inner, ")")
	}
	return name
}

func (r *Row) traceStatus(over bool) runs.TraceStatus {
	switch r.State {
	case Succeeded:
		return runs.TraceCompleted
	case Cached:
		return runs.TraceCached
	case Failed:
		return runs.TraceFailed
	case Queued, Running:
		switch {
		case over:
			return runs.TraceAborted
		case r.State == Running:
			return runs.TraceRunning
		}
		return runs.TraceSubmitted
	}
	return runs.TraceAborted
}
