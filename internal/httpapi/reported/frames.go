package reported

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs/reported"
)

// frame is an object that Nextflow sent. Fields come and go between its versions,
// and change their types: what is there is read, the rest is absent.
type frame map[string]jsontext.Value

// The limits of what is read of a frame, so that twenty megabytes of it never
// become a gigabyte of ours. Nextflow sends a hundred tasks at most.
const (
	maxFields     = 300 // of an object
	maxFrameTasks = 1000
	maxVertices   = 20_000
)

func newDecoder(raw []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// next is the value that follows, within what is decoded.
func next(dec *jsontext.Decoder, raw []byte) (jsontext.Value, error) {
	v, err := dec.ReadValue()
	end := dec.InputOffset()
	return raw[end-int64(len(v)) : end : end], err
}

// readFrame reads an object; ok is false where there is none.
func readFrame(raw []byte) (f frame, ok bool) {
	dec := newDecoder(raw)
	if dec.PeekKind() != '{' {
		return nil, false
	}
	_, _ = dec.ReadToken()
	f = frame{}
	for dec.PeekKind() == '"' && len(f) < maxFields {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, false
		}
		field := name.String() // before the token is gone
		if f[field], err = next(dec, raw); err != nil {
			return nil, false
		}
	}
	return f, len(f) == maxFields || dec.PeekKind() == '}'
}

func (f frame) object(name string) frame {
	o, _ := readFrame(f[name])
	return o
}

// values are the first of a list, one at a time.
func (f frame) values(name string, most int) iter.Seq[jsontext.Value] {
	return func(yield func(jsontext.Value) bool) {
		raw := f[name]
		dec := newDecoder(raw)
		if dec.PeekKind() != '[' {
			return
		}
		_, _ = dec.ReadToken()
		for range most {
			if kind := dec.PeekKind(); kind == ']' || kind == 0 {
				return
			}
			v, err := next(dec, raw)
			if err != nil || !yield(v) {
				return
			}
		}
	}
}

// objects are the objects among the first of a list.
func (f frame) objects(name string, most int) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		for v := range f.values(name, most) {
			if o, ok := readFrame(v); ok && !yield(o) {
				return
			}
		}
	}
}

// text is a text, or a number or word as it is written.
func (f frame) text(name string) (text string) {
	raw := strings.TrimSpace(string(f[name]))
	if raw == "" || raw == "null" || raw[0] == '{' || raw[0] == '[' {
		return ""
	}
	if json.Unmarshal(f[name], &text) != nil {
		return raw
	}
	return text
}

func (f frame) number(name string) *float64 {
	n, err := strconv.ParseFloat(f.text(name), 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) > 1<<62 {
		return nil
	}
	return &n
}

// whole is a number that cannot be negative.
func (f frame) whole(name string) *int64 {
	n := f.number(name)
	if n == nil || *n < 0 {
		return nil
	}
	i := int64(*n)
	return &i
}

// time is a moment, as text or in milliseconds.
func (f frame) time(name string) time.Time {
	if ms := f.whole(name); ms != nil {
		return time.UnixMilli(min(*ms, 1<<48)).UTC()
	}
	t, _ := time.Parse(time.RFC3339, f.text(name))
	return t
}

// tasksAndProgress is what every frame may say.
func tasksAndProgress(in frame) (r reported.Report) {
	instant := int64(0)
	if ms := in.whole("instant"); ms != nil {
		instant = min(*ms, 1<<50-1)
	}
	for t := range in.objects("tasks", maxFrameTasks) {
		if task, ok := nextflowTask(t, instant); ok {
			r.Tasks = append(r.Tasks, task)
		}
	}
	for p := range in.object("progress").objects("processes", reported.MaxNodes) {
		if name := p.text("name"); name != "" {
			r.Nodes = append(r.Nodes, reported.NodeReport{Name: name, Closed: p.text("terminated") == "true"})
		}
	}
	return r
}

// statuses are Nextflow's words for how a task stands, and how far along that is.
var statuses = map[string]struct {
	state reported.State
	along int64
}{
	"NEW": {reported.Queued, 1}, "SUBMITTED": {reported.Queued, 2}, "RUNNING": {reported.Running, 3}, "COMPLETED": {reported.Succeeded, 4},
	"FAILED": {reported.Failed, 4}, "ABORTED": {reported.Cancelled, 4}, "CACHED": {reported.Cached, 4},
}

func nextflowTask(in frame, instant int64) (t reported.Task, ok bool) {
	id := in.whole("taskId")
	status, known := statuses[in.text("status")]
	if id == nil || *id > maxNumber || !known {
		return t, false
	}
	process := cmp.Or(in.text("process"), in.text("name"))
	t = reported.Task{
		ID: strconv.FormatInt(*id, 10), Chain: cmp.Or(in.text("name"), process), Node: process, Number: int(*id), State: status.state, Version: status.along<<50 | instant,
		Name: in.text("name"), Script: in.text("script"), SubmittedAt: in.time("submit"), StartedAt: in.time("start"), EndedAt: in.time("complete"),
		WillRetry: status.state == reported.Failed && in.text("errorAction") == "RETRY", Ignored: status.state == reported.Failed && in.text("errorAction") == "IGNORE",
		Details: reported.Details{
			WorkDir: in.text("workdir"), Container: in.text("container"), Host: in.text("hostname"), NativeID: in.text("nativeId"), Queue: in.text("queue"),
			CPUs: in.number("cpus"), Memory: in.whole("memory"), Disk: in.whole("disk"), TimeMs: in.whole("time"), CPUPercent: in.number("pcpu"),
			Read: in.whole("readBytes"), Written: in.whole("writeBytes"),
		},
	}
	if n := in.whole("attempt"); n != nil {
		t.Attempt = int(min(*n, maxNumber))
	}
	if n := in.number("exit"); n != nil && status.along == 4 && *n >= 0 && *n < maxNumber { // 2³¹-1 stands for none
		code := int(*n)
		t.ExitCode = &code
	}
	if n := in.whole("peakRss"); n != nil {
		t.Peak = *n
	}
	if ms, percent := in.whole("realtime"), in.number("pcpu"); ms != nil && percent != nil && *percent > 0 {
		t.CPU = time.Duration(min(float64(*ms)*(*percent)/100, 1e12) * float64(time.Millisecond))
	}
	return t, true
}

// beginning is what Nextflow says of a run when it begins.
func beginning(in frame, r *reported.Report) {
	about(in.object("workflow"), r)
	var names []string
	for v := range in.values("processNames", reported.MaxNodes) {
		var name string
		if json.Unmarshal(v, &name) == nil && name != "" {
			names = append(names, name)
		}
	}
	for _, name := range names {
		r.Nodes = append(r.Nodes, reported.NodeReport{Name: name, Ordered: true})
	}
	r.Edges = append(r.Edges, processEdges(in.object("dag"), names)...)
}

// about is what Nextflow says of a run as a whole.
func about(w frame, r *reported.Report) {
	if len(w) == 0 {
		return
	}
	r.EngineVersion = w.object("nextflow").text("version")
	r.StartedAt = w.time("start")
	r.Details = map[string]string{}
	for _, name := range []string{
		"commandLine", "projectDir", "workDir", "launchDir", "container", "repository", "revision", "commitId", "profile", "userName", "scriptFile", "sessionId", "configText",
	} {
		if text := w.text(name); text != "" {
			r.Details[name] = text
		}
	}
	if params := w.object("params"); len(params) > 0 {
		r.Parameters = json.RawMessage(w["params"])
	}
}

// processEdges are which process follows which, through operators and channels.
func processEdges(dag frame, names []string) [][2]string {
	processes, vertices := map[string]bool{}, map[string]string{}
	for _, name := range names {
		processes[name] = true
	}
	for v := range dag.objects("vertices", maxVertices) {
		label, scoped := v.text("label"), v.text("scope")+":"+v.text("label")
		switch {
		case v.text("type") != "PROCESS":
			label = ""
		case !processes[label] && processes[scoped]:
			label = scoped
		}
		vertices[v.text("id")] = label
	}
	var edges [][2]string
	for e := range dag.objects("edges", maxVertices) {
		edges = append(edges, [2]string{e.text("source"), e.text("target")})
	}
	return reported.Contract(vertices, edges)
}

// ending is what Nextflow says of a run when it has ended.
func ending(in frame, r *reported.Report) {
	w := in.object("workflow")
	about(w, r)
	r.Finish = &reported.Finish{Status: lifecycle.Completed}
	why := cmp.Or(w.text("errorReport"), w.text("errorMessage"))
	switch success := w.text("success"); {
	case strings.HasPrefix(why, "SIG"):
		r.Finish = &reported.Finish{Status: lifecycle.Cancelled, Message: "Nextflow was stopped by " + why}
	case success == "false", success == "" && w.text("exitStatus") != "0" && why != "":
		r.Finish = &reported.Finish{Status: lifecycle.Failed, Message: why}
	}
	full := fullNames(in)
	for m := range in.objects("metrics", reported.MaxNodes) {
		process := m.text("process")
		for _, of := range []string{"cpu", "cpuUsage", "mem", "memUsage", "vmem", "time", "timeUsage", "reads", "writes"} {
			if v := m.object(of); v.number("max") != nil {
				r.Metrics = append(r.Metrics, reported.Metric{
					Node: cmp.Or(full[process], process), Of: of, Min: or(v.number("min")), Q1: or(v.number("q1")), Median: or(v.number("q2")), Q3: or(v.number("q3")),
					Max: or(v.number("max")), Mean: or(v.number("mean")),
				})
			}
		}
	}
}

// fullNames are the processes by the last part of their names, as metrics call them,
// where it is the name of one alone.
func fullNames(in frame) map[string]string {
	full := map[string]string{}
	for p := range in.object("progress").objects("processes", reported.MaxNodes) {
		name := p.text("name")
		last := name[strings.LastIndexByte(name, ':')+1:]
		if _, twice := full[last]; twice {
			name = ""
		}
		full[last] = name
	}
	return full
}

func or(n *float64) float64 {
	if n == nil {
		return 0
	}
	return *n
}
