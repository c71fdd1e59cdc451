package pipelines

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/reported"
)

// folder is what a task has written, and the store of its picture.
type folder struct {
	files     map[string]string
	picture   reported.Picture
	places    string
	reports   int
	rows      int // of all reports
	refuses   error
	elsewhere bool // the run shows another step
	stopped   bool // the task is being stopped
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

func (f *folder) Open(_ context.Context, _ executor.Handle, path string) (io.ReadSeekCloser, error) {
	text, ok := f.files[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return file{bytes.NewReader([]byte(text))}, nil
}

func (f *folder) BeginLaunched(_ context.Context, l reported.Launched, _ time.Time) (string, bool, error) {
	if f.picture.Nodes == nil {
		f.picture = reported.Picture{
			Run: runs.Run{Status: lifecycle.Running}, Step: l.Step, Nodes: map[string]*reported.Node{}, Edges: map[[2]string]bool{}, Rows: map[string]*reported.Row{},
		}
	}
	return f.places, !f.elsewhere, f.refuses
}

func (f *folder) TakeLaunched(_ context.Context, _ reported.Launched, r reported.Report, places string, now time.Time) (int, error) {
	if f.refuses != nil {
		return 0, f.refuses
	}
	c := f.picture.Merge(r, now)
	f.picture.Tasks += c.Tasks
	f.picture.LeftOut = c.LeftOut
	f.picture.Finished = f.picture.Finished || c.Ending != nil
	for _, row := range f.picture.Rows {
		row.Loaded()
	}
	f.places, f.reports, f.rows = places, f.reports+1, f.rows+len(r.Tasks)
	return c.Progress, nil
}

func (f *folder) LaunchedFailure(_ context.Context, l reported.Launched) (failed reported.FailedTask, err error) {
	for _, row := range f.picture.Rows {
		if row.Counted() == "failed" && l.Step == f.picture.Step {
			failed = reported.FailedTask{Step: row.Node, Name: row.Name, ExitCode: row.ExitCode, Said: row.Message, Failed: failed.Failed + 1}
		}
	}
	return failed, f.refuses
}

// steps are the processes in a line each, and what follows what.
func (f *folder) steps() (lines []string) {
	for _, n := range f.picture.Sorted() {
		r := n.Row()
		lines = append(lines, fmt.Sprintf("%s %s %d/%d, %d failed", n.ID, n.State, r.ShardsDone, *r.Shards, r.ShardsFailed))
	}
	for _, e := range slices.SortedFunc(maps.Keys(f.picture.Edges), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		lines = append(lines, e[0]+" -> "+e[1])
	}
	return lines
}

var august = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)

// clock goes on by what lies between two looks.
func clock() func() time.Time {
	now := august
	return func() time.Time { now = now.Add(lookEvery); return now }
}

func (f *folder) follow(e pipeline.Engine) *Follower {
	return Follow(f, reported.Launched{Run: "run_1", Step: "pipeline", Attempt: 1, Engine: e}, f, clock())
}

func (f *folder) look(t *testing.T, w *Follower, final bool) {
	t.Helper()
	if _, err := w.Look(t.Context(), executor.Handle{}, final, f.stopped); err != nil {
		t.Fatal(err)
	}
}

const snakemakeEvents = `{"seq":1,"at":"2026-08-01T00:00:00.000Z","graph":{"nodes":[{"name":"part"},{"name":"sum"}],"edges":[{"from":"part","to":"sum"}]}}
{"seq":2,"at":"2026-08-01T00:00:00.000Z","graph":{"nodes":[{"name":"part","expected":2},{"name":"sum","expected":1}],"edges":[]}}
{"seq":3,"at":"2026-08-01T00:00:01.000Z","task":{"task":1,"node":"part","attempt":1,"status":"running","name":"n=1","script":"echo 1","cpus":1.0,"memoryBytes":1000}}
{"seq":4,"at":"2026-08-01T00:00:01.000Z","task":{"task":2,"node":"part","attempt":1,"status":"running"}}
{"seq":5,"at":"2026-08-01T00:00:02.000Z","task":{"task":1,"node":"part","attempt":1,"status":"failed","willRetry":true}}
{"seq":6,"at":"2026-08-01T00:00:02.000Z","task":{"task":1,"node":"part","attempt":2,"status":"running"}}
{"seq":7,"at":"2026-08-01T00:00:03.000Z","task":{"task":2,"node":"part","attempt":1,"status":"succeeded"}}
{"seq":8,"progress":{"done":1,"total":3}}
{"seq":9,"at":"2026-08-01T00:00:04.000Z","task":{"task":1,"node":"part","attempt":2,"status":"succeeded"}}
{"seq":10,"at":"2026-08-01T00:00:04.000Z","task":{"task":0,"node":"sum","attempt":1,"status":"running"}}
{"seq":11,"at":"2026-08-01T00:00:05.000Z","task":{"task":0,"node":"sum","attempt":1,"status":"succeeded"}}
{"seq":12,"finish":{"status":"completed"}}
`

var snakemakeSteps = []string{
	"pipeline.part succeeded 2/2, 0 failed", "pipeline.sum succeeded 1/1, 0 failed", "pipeline.part -> pipeline.sum",
}

// However the file grows, and whoever reads it, the picture at the end is the same.
func TestAFileThatGrowsIsReadOnce(t *testing.T) {
	t.Parallel()
	for _, step := range []int{1, 7, 100, len(snakemakeEvents)} {
		f := &folder{files: map[string]string{}}
		w := f.follow(pipeline.Snakemake)
		f.look(t, w, false)
		for end := 0; end < len(snakemakeEvents); end += step {
			f.files[eventsPath] = snakemakeEvents[:end]
			if end%3 == 0 {
				w = f.follow(pipeline.Snakemake) // another worker, which has what is stored
			}
			f.look(t, w, false)
		}
		f.files[eventsPath] = snakemakeEvents
		f.look(t, w, true)
		if got := f.steps(); !slices.Equal(got, snakemakeSteps) || f.rows != 8 || !f.picture.Finished {
			t.Errorf("by %d: %q, %d rows", step, got, f.rows)
		}
		reports := f.reports
		f.look(t, w, true)
		if f.reports != reports {
			t.Error("an end is reported twice")
		}
	}
}

// What could not be stored is read again.
func TestNothingIsLostWhenTheStoreIsAway(t *testing.T) {
	t.Parallel()
	f := &folder{files: map[string]string{eventsPath: snakemakeEvents[:700]}}
	w := f.follow(pipeline.Snakemake)
	f.look(t, w, false)
	f.files[eventsPath], f.refuses = snakemakeEvents, io.ErrUnexpectedEOF
	for _, final := range []bool{false, true} {
		if _, err := w.Look(t.Context(), executor.Handle{}, final, f.stopped); err == nil {
			t.Fatal("an error of the store is not told")
		}
	}
	f.refuses = nil
	f.look(t, w, true)
	if got := f.steps(); !slices.Equal(got, snakemakeSteps) {
		t.Errorf("%q", got)
	}
}

func TestThePipelineOfAnotherStepIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := &folder{files: map[string]string{eventsPath: snakemakeEvents}, elsewhere: true}
	f.look(t, f.follow(pipeline.Snakemake), true)
	if f.reports > 0 {
		t.Error("it is reported")
	}
}

// A stranger's code writes the file.
func TestHostileEvents(t *testing.T) {
	t.Parallel()
	task := func(more string) string { return `{"task":{"task":1,"node":"a","status":"running"` + more + "}}\n" }
	for name, tt := range map[string]struct {
		text  string
		steps string
	}{
		"nothing":            {"", ""},
		"no JSON":            {"\x00\xff{[\n\n" + strings.Repeat("[", 1<<17) + "\n" + task(""), "pipeline.a cancelled 0/1, 0 failed"},
		"no end":             {strings.TrimSuffix(task(""), "\n"), ""},
		"a line without end": {strings.Repeat("x", 3*chunk/2) + "\n" + task(""), "pipeline.a cancelled 0/1, 0 failed"},
		"numbers":            {task(`,"attempt":-1`) + task(`,"attempt":1e99`) + task(`,"exitCode":99999999999`) + `{"task":{"task":-1,"node":"a","status":"running"}}` + "\n", ""},
		"states":             {`{"task":{"task":1,"node":"a","status":"won"}}` + "\n" + `{"task":{"node":"a","status":"running"}}` + "\n", ""},
		"names":              {`{"task":{"task":1,"node":"../\u0000<b>\ud800","status":"running"}}` + "\n", "pipeline.n______b___"},
		"expected":           {`{"graph":{"nodes":[{"name":"a","expected":-5}]}}` + "\n", "pipeline.a skipped 0/0, 0 failed"},
		"a circle":           {`{"graph":{"edges":[{"from":"a","to":"b"},{"from":"b","to":"a"}]}}` + "\n", "pipeline.a skipped"},
	} {
		f := &folder{files: map[string]string{eventsPath: tt.text}}
		f.look(t, f.follow(pipeline.Snakemake), true)
		if got := strings.Join(f.steps(), "; "); !strings.HasPrefix(got, tt.steps) || tt.steps == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
		for _, n := range f.picture.Nodes {
			if strings.ContainsAny(n.Name, "\x00\n") {
				t.Errorf("%s: the name %q", name, n.Name)
			}
		}
	}
}

// A look that is called off is no last one: what it has not read, the next reads.
func TestALookThatIsCalledOffIsTakenAgain(t *testing.T) {
	t.Parallel()
	f := &folder{files: map[string]string{eventsPath: `{"task":{"task":1,"node":"n","status":"succeeded"}}` + "\n"}}
	w := f.follow(pipeline.Snakemake)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Look(ctx, executor.Handle{}, true, false); err == nil || f.rows > 0 {
		t.Errorf("%d tasks are taken, %v", f.rows, err)
	}
	if _, err := w.Look(t.Context(), executor.Handle{}, true, false); err != nil || f.rows != 1 || !f.picture.Finished {
		t.Errorf("then %d tasks, %v", f.rows, err)
	}
}

// However much is written, no more is read than a run can show.
func TestAFloodOfEventsIsBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&b, `{"task":{"task":%d,"node":"n%d","status":"succeeded"}}`+"\n", i, i%7)
	}
	f := &folder{files: map[string]string{eventsPath: b.String()}}
	w := f.follow(pipeline.Snakemake)
	f.look(t, w, false)
	if f.rows != perLook*batchLines {
		t.Errorf("one look takes %d", f.rows)
	}
	w.places.Lines = maxLines - 2*batchLines - 5 // as if there had been so many
	f.look(t, w, true)
	if f.rows > (perLook+2)*batchLines+5 || f.picture.LeftOut != tooMuch || len(f.picture.Nodes) != 7 {
		t.Errorf("%d tasks of %d steps are taken: %q", f.rows, len(f.picture.Nodes), f.picture.LeftOut)
	}
	f = &folder{files: map[string]string{eventsPath: b.String()}, places: fmt.Sprintf(`{"offsets":{%q:%d},"lines":1}`, eventsPath, maxBytes-100)}
	f.files[eventsPath] = strings.Repeat("\n", 1000) // it was cut meanwhile
	f.look(t, f.follow(pipeline.Snakemake), true)
	if f.rows > 0 {
		t.Errorf("%d rows of what is not there", f.rows)
	}
}

// Nothing in a file stops us, or has us read it for ever.
func FuzzFiles(f *testing.F) {
	f.Add(snakemakeEvents, true)
	for _, name := range []string{"nextflow.log", "trace.txt", "dag.dot"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), false)
	}
	f.Fuzz(func(t *testing.T, text string, snakemake bool) {
		engine := pipeline.Nextflow
		if snakemake {
			engine = pipeline.Snakemake
		}
		d := &folder{files: map[string]string{eventsPath: text, logPath: text, eventsPath + ".dot": text}}
		d.look(t, d.follow(engine), true)
		for _, n := range d.picture.Sorted() {
			if !strings.HasPrefix(n.ID, "pipeline.") || strings.ContainsAny(n.Name, "\x00\n") {
				t.Errorf("a step is called %q, %q", n.ID, n.Name)
			}
		}
	})
}

// Nextflow quotes in its log what the task printed; Snakemake sends it with the task.
func TestTheTaskThatFailedIsNamed(t *testing.T) {
	t.Parallel()
	const log = "ERROR ~ Error executing process > 'ALIGN (S2)'\n\nCommand exit status:\n  127\n\nCommand output:\n  (empty)\n\nCommand error:\n  starting\n  bwa: command not found\n\nWork dir:\n  /work/3d\n\nTip: look\n"
	failed := `{"task":{"task":1,"node":"ALIGN","status":"failed","name":"ALIGN (S2)","exitCode":127}}` + "\n"
	for want, tt := range map[string]struct{ events, log string }{
		"": {snakemakeEvents, log},
		"Task ALIGN (S2) exited with status 127: bwa: command not found\n\nstarting\nbwa: command not found": {failed, log},
		"Task ALIGN (S2) exited with status 127": {failed, "a line\nCommand error: none\n"},
	} {
		f := &folder{files: map[string]string{eventsPath: tt.events}}
		w := f.follow(pipeline.Snakemake)
		f.look(t, w, true)
		if got, err := w.Cause(t.Context(), tt.log); err != nil || got != want {
			t.Errorf("%q, not %q: %v", got, want, err)
		}
	}
}

// What dies because its run is cancelled has not failed.
func TestTheTasksOfAStoppedPipelineAreCancelled(t *testing.T) {
	t.Parallel()
	task := func(number int, status string) string {
		return fmt.Sprintf(`{"task":{"task":%d,"node":"part","attempt":1,"status":%q}}`, number, status) + "\n"
	}
	f := &folder{files: map[string]string{eventsPath: task(1, "failed") + task(2, "running")}}
	w := f.follow(pipeline.Snakemake)
	f.look(t, w, false)
	f.files[eventsPath] += task(2, "failed")
	f.stopped = true
	f.look(t, w, true)
	if first, second := f.picture.Rows["1.1"], f.picture.Rows["2.1"]; first.State != reported.Failed || second.State != reported.Cancelled {
		t.Errorf("the tasks are %s and %s", first.State, second.State)
	}
}
