package pipelines

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/runs/reported"
)

// logPath is Nextflow's own log, in the folder that it works in. It tells what has
// begun; the trace, what has ended; the graph comes with the end.
var logPath = path.Join(shim.WorkFolder, ".nextflow.log")

var (
	submitted = regexp.MustCompile(` - \[([0-9a-f]{2}/[0-9a-f]{6})\] (Submitted|Re-submitted) process > (.+)$`)
	starting  = regexp.MustCompile(` nextflow\.processor\.TaskProcessor - Starting process > ([A-Za-z0-9_:]+)$`)
	process   = regexp.MustCompile(`^[A-Za-z0-9_:]+`)
	hash      = regexp.MustCompile(`^[0-9a-f]{2}/[0-9a-f]{6}$`)
)

// Versions of what is said of a task: its end counts, whichever is read first.
const (
	begun = 1
	ended = 2
)

// log takes lines of the log.
func (b *batch) log(text []byte) (used int) {
	for b.room() {
		line, _, whole := bytes.Cut(text[used:], []byte("\n"))
		if !whole {
			break
		}
		used += len(line) + 1
		if m := starting.FindSubmatch(line); m != nil {
			if !b.say() {
				break
			}
			b.report.Nodes = append(b.report.Nodes, reported.NodeReport{Name: string(m[1])})
		}
		if m := submitted.FindSubmatch(line); m != nil {
			if !b.say() {
				break
			}
			b.submitted(string(m[1]), string(m[3]), string(m[2]) == "Re-submitted")
		}
	}
	return used
}

// submitted notes that a task has begun. Which attempt a further one is, only the
// trace tells.
func (b *batch) submitted(id, name string, again bool) {
	t := reported.Task{
		ID: id, Chain: name, Node: cmp.Or(process.FindString(name), name), Name: name, Number: reported.Unnumbered, Attempt: 1, State: reported.Running, Version: begun,
		StartedAt: b.now,
	}
	if again {
		t.Attempt = 2
	}
	b.report.Tasks = append(b.report.Tasks, t)
}

// trace takes rows of the table of tasks that have ended. The script of a task has
// lines of its own; our settings put it before the last column, which is a word.
func (b *batch) trace(text []byte) (used int) {
	if b.places.Header == "" {
		line, _, whole := bytes.Cut(text, []byte("\n"))
		if !whole || len(line) > 4096 {
			return 0
		}
		b.places.Header, used = "-", len(line)+1
		if bytes.HasPrefix(line, []byte("task_id\t")) {
			b.places.Header = strings.ToValidUTF8(string(line), "")
		}
	}
	columns := strings.Split(b.places.Header, "\t")
	scripts := strings.HasSuffix(b.places.Header, "\tscript\terror_action")
	for b.room() {
		row, length := firstRow(text[used:], len(columns), scripts)
		if length == 0 {
			break
		}
		used += length
		if row == nil {
			continue
		}
		if t, ok := taskIn(fieldsOf(row, columns, scripts)); ok {
			if !b.say() {
				break
			}
			b.addLog(&t)
			b.report.Tasks = append(b.report.Tasks, t)
		}
	}
	return used
}

// workFolder is that of a task, where the pipeline sets no other.
var workFolder = regexp.MustCompile(`/work/([0-9a-f]{2}/[0-9a-f]{30})$`)

// addLog adds the last of what a task has printed.
func (b *batch) addLog(t *reported.Task) {
	found := workFolder.FindStringSubmatch(t.Details.WorkDir)
	if found == nil || t.State == reported.Cached { // whose log an earlier run has
		return
	}
	most := otherLog
	if t.State == reported.Failed {
		most = failedLog
	}
	t.Message = endOf(b.open, path.Join(shim.WorkFolder, "work", found[1], ".command.log"), most)
	b.logs += len(t.Message)
}

// maxRow is how long a row may be with its script.
const maxRow = 256 << 10

var (
	rowBegins = regexp.MustCompile(`^[0-9]{1,10}\t`)
	rowEnds   = regexp.MustCompile(`\t(-|[A-Z]{1,20})\r?$`)
)

// firstRow is the row that a text begins with; nil where that is none. length is 0
// where its end is still to come.
func firstRow(text []byte, columns int, scripts bool) (row []byte, length int) {
	begins := rowBegins.Match(text[:min(len(text), 16)])
	for end, tabs := 0, 0; ; {
		line, _, whole := bytes.Cut(text[end:], []byte("\n"))
		if !whole {
			return nil, 0
		}
		end += len(line)
		row = text[:end]
		end++
		tabs += bytes.Count(line, []byte("\t"))
		switch {
		case !begins || end > maxRow:
			return nil, end
		case tabs >= columns-1 && (!scripts || rowEnds.Match(line)):
			return row, end
		case !scripts:
			return nil, end
		}
	}
}

// fieldsOf are the values of a row by the names of the columns.
func fieldsOf(row []byte, columns []string, scripts bool) map[string]string {
	values := strings.Split(string(row), "\t")
	if scripts { // a script may have tabs: it is what the others leave
		n := len(columns)
		values = append(values[:n-2:n-2], strings.Join(values[n-2:len(values)-1], "\t"), values[len(values)-1])
	}
	fields := map[string]string{}
	for i, name := range columns {
		if value := strings.TrimSpace(values[i]); value != "-" {
			fields[name] = value
		}
	}
	return fields
}

var states = map[string]reported.State{
	"COMPLETED": reported.Succeeded, "FAILED": reported.Failed, "ABORTED": reported.Cancelled, "CACHED": reported.Cached,
}

func taskIn(f map[string]string) (t reported.Task, ok bool) {
	state, known := states[f["status"]]
	if !known || !hash.MatchString(f["hash"]) || f["name"] == "" {
		return t, false
	}
	t = reported.Task{
		ID: f["hash"], Chain: f["name"], Node: cmp.Or(f["process"], process.FindString(f["name"]), f["name"]), Name: f["name"], Number: reported.Unnumbered, State: state, Version: ended,
		WillRetry: state == reported.Failed && f["error_action"] == "RETRY", Ignored: state == reported.Failed && f["error_action"] == "IGNORE",
		Script: f["script"], SubmittedAt: timeIn(f["submit"]), StartedAt: timeIn(f["start"]), EndedAt: timeIn(f["complete"]),
		Details: reported.Details{
			WorkDir: f["workdir"], Container: f["container"], Host: f["hostname"], NativeID: f["native_id"], Queue: f["queue"], CPUs: numberIn(f["cpus"]), CPUPercent: numberIn(f["%cpu"]),
			Memory: wholeIn(f["memory"]), Disk: wholeIn(f["disk"]), TimeMs: wholeIn(f["time"]), Read: wholeIn(f["read_bytes"]), Written: wholeIn(f["write_bytes"]),
		},
	}
	if n := wholeIn(f["attempt"]); n != nil {
		t.Attempt = int(min(*n, maxNumber))
	}
	if n := wholeIn(f["exit"]); n != nil && *n < maxNumber { // that number stands for none
		code := int(*n)
		t.ExitCode = &code
	}
	if n := wholeIn(f["peak_rss"]); n != nil {
		t.Peak = *n
	}
	if ms, percent := wholeIn(f["realtime"]), numberIn(f["%cpu"]); ms != nil && percent != nil {
		t.CPU = time.Duration(min(float64(*ms)*(*percent)/100, 1e12) * float64(time.Millisecond))
	}
	return t, true
}

// wholeIn is a number that is not negative; nil: there is none.
func wholeIn(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 63)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

func numberIn(text string) *float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n < 1e15) {
		return nil
	}
	return &n
}

// timeIn is a moment in milliseconds.
func timeIn(text string) time.Time {
	if ms := wholeIn(text); ms != nil {
		return time.UnixMilli(min(*ms, 1<<48)).UTC()
	}
	return time.Time{}
}

var (
	vertex = regexp.MustCompile(`(?m)^(v[0-9]+) \[label="([^"\n]*)"\];$`)
	edge   = regexp.MustCompile(`(?m)^(v[0-9]+) -> (v[0-9]+)(?: \[.*\])?;$`)
)

// dag takes the graph, once it is whole: processes have a label and no shape, and
// what is between them is drawn through.
func (b *batch) dag(text []byte) (used int) {
	if !bytes.HasSuffix(bytes.TrimSpace(text), []byte("}")) {
		return 0
	}
	names := map[string]string{}
	for _, m := range vertex.FindAllSubmatch(text, -1) {
		names[string(m[1])] = string(m[2])
	}
	var edges [][2]string
	for _, m := range edge.FindAllSubmatch(text, -1) {
		edges = append(edges, [2]string{string(m[1]), string(m[2])})
	}
	if b.report.Edges = reported.Contract(names, edges); len(b.report.Edges) > 0 {
		b.said = true
	}
	return len(text)
}
