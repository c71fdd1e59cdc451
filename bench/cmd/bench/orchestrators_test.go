package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The results that are compared with do not come from the programs that are measured.
func TestTheResultsOfTheWork(t *testing.T) {
	for want, w := range map[string]work{
		"35245780": {"long", 10, 33}, "2200": {"short", 40, 10}, "1000 25500": {"fan", 1000, 0}, "51 1276": {"fan", 51, 0}, "1": {"short", 1, 1},
	} {
		if got := w.want(); got != want {
			t.Errorf("%s: %s, want %s", w, got, want)
		}
	}
}

// What is laid out gives these results, by the system's Python and without any tool.
func TestTheProgramsGiveTheResults(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not here")
	}
	run := func(dir string, args ...string) string {
		cmd := exec.Command("python3", append([]string{"work.py"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(dir, name, text string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	chain, dir := work{"short", 3, 10}, t.TempDir()
	if err := chain.layOut(dir); err != nil {
		t.Fatal(err)
	}
	got := run(dir, "step", "10")
	for range chain.tasks - 1 {
		got = run(dir, "step", "10", write(dir, "before", got))
	}
	if got != chain.want() {
		t.Errorf("the sequence gives %s, want %s", got, chain.want())
	}
	fan, dir := work{"fan", 7, 0}, t.TempDir()
	if err := fan.layOut(dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "files", "*"))
	if err != nil || len(files) != fan.tasks {
		t.Fatalf("%v, %v", files, err)
	}
	args := []string{"gather"}
	for _, file := range files {
		args = append(args, write(dir, filepath.Base(file)+".count", run(dir, "count", file)))
	}
	if got := run(dir, args...); got != fan.want() {
		t.Errorf("the fan-out gives %s, want %s", got, fan.want())
	}
}

func TestAWrongResultIsAnError(t *testing.T) {
	wrong := opened{
		prepare: func(work, string) error { return nil }, command: func(work, string) *exec.Cmd { return exec.Command("true") },
		result: func(work, string) (string, error) { return "2 3\n", nil }, beside: nothing, close: func() {},
	}
	s := settings{store: t.TempDir()}
	if m, err := wrong.measure(s, work{"fan", 2, 0}); err != nil || m.number("n") != 2 && m["n"] != 2 {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := wrong.measure(s, work{"fan", 3, 0}); err == nil || !strings.Contains(err.Error(), `"2 3" instead of "3 6"`) {
		t.Error(err)
	}
	wrong.command = func(work, string) *exec.Cmd { return exec.Command("sh", "-c", "echo why; exit 3") }
	if _, err := wrong.measure(s, work{"fan", 2, 0}); err == nil || !strings.Contains(err.Error(), "exit status 3: why") {
		t.Error(err)
	}
}

func TestWhatWasMeasuredIsTakenOverOnlyOfTheSameWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "earlier.jsonl")
	text := `{"about":{"machine":"m","atOnce":2,"work":["w"],"versions":{"luigi":"3"}}}
{"name":"luigi","op":"fan","round":1,"s":2,"cpu_s":1,"load":"0.5"}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var now about
	now.About.Machine, now.About.AtOnce, now.About.Work, now.About.Versions = "m", 2, []string{"w"}, map[string]string{"luigi": "3"}
	r := &results{}
	if err := r.resume(path, now); err != nil || !r.has("luigi", "fan", 1) || r.has("luigi", "fan", 0) || r.has("luigi", "long", 1) {
		t.Errorf("%v, %v", r.all, err)
	}
	now.About.AtOnce = 4
	if err := new(results).resume(path, now); err == nil || !strings.Contains(err.Error(), "other sizes, versions or another machine") {
		t.Error(err)
	}
}

func TestTheTableOfOrchestrators(t *testing.T) {
	var a about
	a.About.Machine, a.About.AtOnce, a.About.Versions = "2 cores", 2, map[string]string{us: "v1", "luigi": "3.8"}
	r := &results{all: []measurement{
		{"name": us, "op": "long", "s": 5.0, "cpu_s": 4.0, "load": "0.5"},
		{"name": us, "op": "long", "s": 7.0, "cpu_s": 4.5, "load": "1.5"},
		{"name": us, "op": "long", "s": 6.0, "cpu_s": 5.0, "load": "1"},
		{"name": "luigi", "op": "long", "s": 150.0, "cpu_s": 12.0, "load": "0.25"},
	}}
	var got strings.Builder
	writeOrchestrators(&got, a, r, []work{{"long", 10, 33}, {"short", 0, 10}, {"fan", 9, 0}})
	want := `
2 cores. 2 tasks at a time.

| tool | load | 10 tasks of fibo(33), one after the other | × | CPU | 9 files, then one task | × | CPU |
|---|---|---|---|---|---|---|---|
| millrace v1 | 0.5 to 1.5 | 6.0 s | 1.0 | 4.5 s | – | – | – |
| luigi 3.8 | 0.2 to 0.2 | 150 s | 25.0 | 12.0 s | – | – | – |
`
	if got.String() != want {
		t.Errorf("%s", got.String())
	}
}

func TestTheSequenceOfNextflow(t *testing.T) {
	want := `include { step as step0 } from './step.nf'
include { step as step1 } from './step.nf'
workflow {
    step0([])
    step1(step0.out)
    step1.out.collectFile(name: 'out.txt', storeDir: projectDir)
}
`
	if got := nextflowChain(2); got != want {
		t.Errorf("%s", got)
	}
}
