package pipelines

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/pipeline"
)

// written are the files of a real Nextflow 24.10, as testdata/README.md says.
func written(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for path, name := range map[string]string{logPath: "nextflow.log", eventsPath: "trace.txt", eventsPath + ".dot": "dag.dot"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		files[path] = string(text)
	}
	return files
}

// plain leaves the hash out of the id of a step.
func plain(lines []string) (list []string) {
	for _, l := range lines {
		for _, name := range []string{"QC_COUNT", "QC_CHECK"} {
			for {
				at := strings.Index(l, "n_"+name+"_")
				if at < 0 {
					break
				}
				l = l[:at] + name + l[at+len("n__")+len(name)+8:]
			}
		}
		list = append(list, l)
	}
	return list
}

// The files grow one after the other, in any order, and whoever reads them along
// comes to the same picture.
func TestTheFilesOfNextflowGiveThePicture(t *testing.T) {
	t.Parallel()
	whole := written(t)
	want := []string{
		"pipeline.TRIM succeeded 3/3, 0 failed", "pipeline.QC_CHECK succeeded 3/3, 0 failed", "pipeline.QC_COUNT succeeded 3/3, 0 failed", "pipeline.REPORT succeeded 1/1, 0 failed",
		"pipeline.TRIM -> pipeline.QC_CHECK", "pipeline.TRIM -> pipeline.QC_COUNT", "pipeline.QC_COUNT -> pipeline.REPORT",
	}
	slices.Sort(want)
	for _, order := range [][]string{{logPath, eventsPath, eventsPath + ".dot"}, {eventsPath + ".dot", eventsPath, logPath}} {
		f := &folder{files: map[string]string{}}
		w := f.follow(pipeline.Nextflow)
		for _, path := range order {
			for end := 0; end < len(whole[path]); end += 97 {
				f.files[path] = whole[path][:end]
				f.look(t, w, false)
			}
			f.files[path] = whole[path]
			w = f.follow(pipeline.Nextflow)
		}
		f.look(t, w, true)
		got := plain(f.steps())
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		attempts, scripts := 0, 0
		for _, row := range f.picture.Rows {
			attempts = max(attempts, row.Attempt)
			if strings.Contains(row.Script, "sleep 1") && strings.Contains(row.Script, "trimmed.txt") {
				scripts++
			}
		}
		if len(f.picture.Rows) != 11 || attempts != 2 || scripts != 4 {
			t.Errorf("%d attempts, at most %d of a task, %d scripts of TRIM", len(f.picture.Rows), attempts, scripts)
		}
	}
}

// While tasks run they are shown, before any has ended.
func TestWhatNextflowHasSubmittedRuns(t *testing.T) {
	t.Parallel()
	f := &folder{files: map[string]string{}}
	log, _, _ := strings.Cut(written(t)[logPath], "Task completed")
	f.files[logPath] = log[:strings.LastIndexByte(log, '\n')+1]
	f.look(t, f.follow(pipeline.Nextflow), false)
	got := plain(f.steps())
	if len(got) != 4 || got[0] != "pipeline.TRIM running 0/2, 0 failed" || !strings.HasSuffix(got[1], " pending 0/0, 0 failed") {
		t.Errorf("%q", got)
	}
}

// Tables of strangers.
func TestHostileTables(t *testing.T) {
	t.Parallel()
	const ours = "task_id\thash\tname\tstatus\tscript\terror_action\n"
	const row = "1\tab/cdef01\tA (1)\tCOMPLETED\techo\n\techo\t2\n\t-\n"
	const done = "pipeline.A succeeded 1/1, 0 failed"
	for name, tt := range map[string]struct{ text, steps string }{
		"a row":                 {ours + row, done},
		"twice":                 {ours + row + row, done},
		"no header":             {row, ""},
		"other columns":         {"task_id\thash\tname\tstatus\n1\tab/cdef01\tA (1)\tCOMPLETED\n", done},
		"too few values":        {"task_id\thash\tname\tstatus\n1\tab/cdef01\n" + "1\tab/cdef01\tA (1)\tCOMPLETED\n", done},
		"too many values":       {"task_id\thash\tname\tstatus\n1\tab/cdef01\tA (1)\tCOMPLETED\t\t\t\n", done},
		"a script without end":  {ours + "2\tab/cdef02\tB\tCOMPLETED\t" + strings.Repeat("x\n", maxRow) + row, done},
		"another that has none": {ours + "2\tab/cdef02\tB\tCOMPLETED\techo\n", ""},
		"a hash that is none":   {ours + "1\t../../etc\tA\tCOMPLETED\t-\t-\n" + row, done},
		"NULs":                  {ours + "\x00\x00\n" + row, done},
		"a header without end":  {"task_id\t" + strings.Repeat("x", 2*chunk), ""},
		"numbers":               {"task_id\thash\tname\tstatus\tattempt\texit\tpeak_rss\tsubmit\n1\tab/cdef01\tA (1)\tCOMPLETED\t-9\t99999999999999999999\tNaN\t9223372036854775807\n", done},
	} {
		f := &folder{files: map[string]string{eventsPath: tt.text}}
		f.look(t, f.follow(pipeline.Nextflow), true)
		if got := strings.Join(f.steps(), "; "); got != tt.steps {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Each task has the end of its own log: of one that failed more than of others.
func TestTasksOfNextflowHaveTheirLogs(t *testing.T) {
	t.Parallel()
	f := &folder{files: written(t)}
	for _, task := range []string{"3d/5ace0eb4a5d0b2dd2c4886fb03bfc1", "5f/fe70fa59cce08b72067ace36663c04"} {
		f.files["work/work/"+task+"/.command.log"] = strings.Repeat("one of many lines\n", 10_000) + "the last of " + task[:2] + "\xff\x00\n"
	}
	f.look(t, f.follow(pipeline.Nextflow), true)
	for id, most := range map[string]int{"3d/5ace0e": failedLog, "5f/fe70fa": otherLog, "de/8b8f56": 0} {
		log := f.picture.Rows[id].Message
		if most == 0 && log == "" {
			continue
		}
		if len(log) > most || len(log) < most-20 || !strings.HasPrefix(log, "one of many") || !strings.HasSuffix(log, "the last of "+id[:2]+"\n") {
			t.Errorf("%s has %d bytes of its log, %.20q", id, len(log), log)
		}
	}
	if failed := f.picture.Rows["3d/5ace0e"].AsAttempt(f.picture.Rows["3d/5ace0e"].Message); strings.Count(failed.Message, "\n") != 9 || !strings.HasSuffix(failed.Message, "the last of 3d") {
		t.Errorf("its attempt says %q", failed.Message)
	}
}

// Many logs are many reports, of which each is small.
func TestLogsDoNotMakeALargeReport(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	rows.WriteString("task_id\thash\tname\tstatus\tworkdir\n")
	f := &folder{files: map[string]string{}}
	for i := range 100 {
		task := fmt.Sprintf("ab/%06x%024x", i, 0)
		f.files["work/work/"+task+"/.command.log"] = strings.Repeat("x", failedLog)
		fmt.Fprintf(&rows, "%d\t%s\tA (%d)\tFAILED\t/work/work/%s\n", i, task[:9], i, task)
	}
	f.files[eventsPath] = rows.String()
	f.look(t, f.follow(pipeline.Nextflow), true)
	if f.reports < 100*failedLog/(chunk+failedLog) || f.rows != 100 {
		t.Errorf("%d tasks in %d reports", f.rows, f.reports)
	}
}
