package reported

import (
	"math"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// Report is what an engine says at once. The words of the engines are translated
// before.
type Report struct {
	Seq      int64 // the highest number in it; 0: they are not numbered
	Nodes    []NodeReport
	Edges    [][2]string // names: the second follows the first
	Tasks    []Task
	Progress *Progress
	Log      []LogText
	Finish   *Finish
	LeftOut  string // what the report lacks, for people; empty: nothing

	// What is said once, when the run has begun or ended.
	EngineVersion string
	Name          string
	StartedAt     time.Time
	Parameters    []byte // a JSON object
	Details       map[string]string
	Metrics       []Metric
}

// NodeReport is a step that will be.
type NodeReport struct {
	Name     string
	Expected *int // tasks in all
	Closed   bool // no more tasks will come
	Ordered  bool // where it stands in the list is where it stands in the run
}

// Progress is how far a run is by its own count.
type Progress struct{ Done, Total int64 }

// LogText is text for the log. It is taken once.
type LogText struct {
	Seq  int64
	Text string
}

// Finish is how a run ended.
type Finish struct {
	Status  lifecycle.Status // completed, failed or cancelled
	Message string
}

// State is how an attempt of a task stands.
type State string

// The states.
const (
	Queued    State = "queued"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Cached    State = "cached"
	Cancelled State = "cancelled"
)

// Known reports whether it is one of them.
func (s State) Known() bool {
	switch s {
	case Queued, Running, Succeeded, Failed, Cached, Cancelled:
		return true
	}
	return false
}

// Unnumbered is the number of a task whose engine does not tell one.
const Unnumbered = -1

// Task is one attempt of a task. What is empty was not said.
type Task struct {
	ID      string // of this attempt, in its run
	Chain   string // what the attempts of one task have in common within their step
	Node    string // the step's name
	Number  int    // of the task, or of the attempt where the engine counts those; Unnumbered: in the order of arrival
	Attempt int    // from 1
	State   State
	Version int64 // the greater of two is the newer

	WillRetry   bool
	Ignored     bool
	Name        string
	ExitCode    *int
	Message     string
	Script      string
	SubmittedAt time.Time
	StartedAt   time.Time
	EndedAt     time.Time
	Peak        int64 // bytes of memory
	CPU         time.Duration
	Details     Details
}

// Details are what people look at and nothing is computed of.
type Details struct {
	WorkDir    string   `json:"workDir,omitempty"`
	Container  string   `json:"container,omitempty"`
	Host       string   `json:"host,omitempty"`
	NativeID   string   `json:"nativeId,omitempty"`
	Queue      string   `json:"queue,omitempty"`
	CPUs       *float64 `json:"cpus,omitempty"`
	Memory     *int64   `json:"memory,omitempty"` // bytes asked for
	Disk       *int64   `json:"disk,omitempty"`
	TimeMs     *int64   `json:"timeMs,omitempty"`
	CPUPercent *float64 `json:"cpuPercent,omitempty"`
	Read       *int64   `json:"read,omitempty"` // bytes
	Written    *int64   `json:"written,omitempty"`
}

// Clean cuts and mends what a stranger sent.
func (r *Report) Clean(now time.Time) {
	for i := range r.Tasks {
		r.Tasks[i].clean(now)
	}
	for i := range r.Nodes {
		r.Nodes[i].Name = line(r.Nodes[i].Name, maxName)
	}
	for i := range r.Edges {
		r.Edges[i] = [2]string{line(r.Edges[i][0], maxName), line(r.Edges[i][1], maxName)}
	}
	for i := range r.Log {
		r.Log[i].Text = Text(r.Log[i].Text, MaxText)
	}
	if r.Finish != nil {
		r.Finish.Message = Text(r.Finish.Message, MaxText)
	}
	r.EngineVersion, r.Name = line(r.EngineVersion, 100), line(r.Name, 200)
	if r.StartedAt = within(r.StartedAt, now); r.StartedAt.After(now) {
		r.StartedAt = now
	}
	r.Parameters = parameters(r.Parameters)
	for name, text := range r.Details {
		if r.Details[name] = Text(text, MaxText); !detailName.MatchString(name) || text == "" || len(r.Details) > maxDetails {
			delete(r.Details, name)
		}
	}
	if len(r.Metrics) > MaxNodes*metricsOfNode {
		r.Metrics = r.Metrics[:MaxNodes*metricsOfNode]
	}
	for i := range r.Metrics {
		r.Metrics[i].Node = line(r.Metrics[i].Node, maxName)
	}
}

// SetTimes says when something happened that came without a time of its own: an
// attempt started or ended when it was reported to.
func (t *Task) SetTimes(at time.Time) {
	switch {
	case t.State == Running && t.StartedAt.IsZero():
		t.StartedAt = at
	case t.State != Running && t.State != Queued && t.EndedAt.IsZero():
		t.EndedAt = at
	}
}

// metricsOfNode is how many things an engine measures of a step.
const metricsOfNode = 9

func (t *Task) clean(now time.Time) {
	t.Node, t.Name, t.Chain = line(t.Node, maxName), line(t.Name, maxName), line(t.Chain, maxName)
	t.Message, t.Script = Text(t.Message, MaxText), Text(t.Script, MaxText)
	t.SubmittedAt, t.StartedAt, t.EndedAt = within(t.SubmittedAt, now), within(t.StartedAt, now), within(t.EndedAt, now)
	t.Attempt = max(1, t.Attempt)
	t.Peak, t.CPU = max(0, t.Peak), max(0, t.CPU)
	d := &t.Details
	for _, text := range []*string{&d.WorkDir, &d.Container, &d.Host, &d.NativeID, &d.Queue} {
		*text = Text(*text, maxShortText)
	}
	for _, n := range []**float64{&d.CPUs, &d.CPUPercent} {
		if *n != nil && (math.IsNaN(**n) || math.IsInf(**n, 0)) {
			*n = nil
		}
	}
}
