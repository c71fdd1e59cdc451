package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrinterShowsFailuresAndNotesSkips(t *testing.T) {
	events := `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"a word nobody needs\n"}
{"Action":"pass","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"p","Test":"TestBad","Output":"    p_test.go:9: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestBad"}
{"Action":"output","Package":"p","Test":"TestLater","Output":"    p_test.go:12: needs root\n"}
{"Action":"skip","Package":"p","Test":"TestLater"}
{"Action":"output","Package":"p","Test":"TestHangs","Output":"panic: timed out\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t1.0s\n"}
{"Action":"fail","Package":"p"}
{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined\n"}
{"Action":"output","Package":"r","Output":"PASS\n"}
{"Action":"output","Package":"r","Output":"ok  \tr\t0.1s\n"}
{"Action":"pass","Package":"r"}
`
	var out strings.Builder
	p := newPrinter(&out)
	p.read(strings.NewReader(events))
	want := "    p_test.go:9: wrong\npanic: timed out\nFAIL\tp\t1.0s\nq.go:1: undefined\nok  \tr\t0.1s\n"
	if out.String() != want {
		t.Errorf("printed:\n%s\nwant:\n%s", out.String(), want)
	}
	file := filepath.Join(t.TempDir(), "skipped")
	earlier := "p\tTestBad\tno cluster\np\tTestOther\tno disk\n"
	if err := os.WriteFile(file, []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.note(file); err != nil {
		t.Fatal(err)
	}
	noted, err := os.ReadFile(file)
	if want := "p\tTestOther\tno disk\np\tTestLater\tneeds root\n"; err != nil || string(noted) != want {
		t.Errorf("noted %q, %v, want %q", noted, err, want)
	}
}

func TestCommandWritesEvents(t *testing.T) {
	for given, want := range map[string]string{
		"-short ./...":                        "test -json -short ./...",
		"-C tools/rules ./...":                "test -C tools/rules -json ./...",
		"-program /tmp/driver q -test.run ^T": "tool test2json -p q /tmp/driver -test.v=test2json -test.run ^T",
	} {
		if got := strings.Join(command(strings.Fields(given)), " "); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

func TestVerbosePrinterShowsEverythingOnce(t *testing.T) {
	var out strings.Builder
	p := newPrinter(&out)
	p.verbose = true
	p.read(strings.NewReader(`{"Action":"output","Package":"p","Test":"TestX","Output":"=== RUN   TestX\n"}
{"Action":"output","Package":"p","Test":"TestX","Output":"    p_test.go:12: needs root\n"}
{"Action":"skip","Package":"p","Test":"TestX"}
{"Action":"output","Package":"p","Output":"ok\n"}
{"Action":"pass","Package":"p"}
`))
	if want := "=== RUN   TestX\n    p_test.go:12: needs root\nok\n"; out.String() != want || p.skipped[test{"p", "TestX"}] != "needs root" {
		t.Errorf("printed %q, skipped %v", out.String(), p.skipped)
	}
}

// What was skipped is said once, by the outermost of several calls, whether or not tests
// fail.
func TestSkippedTestsAreSaidAtTheEnd(t *testing.T) {
	note := func(pkg, name, why string) string {
		return "printf '" + pkg + "\\t" + name + "\\t" + why + "\\n' >>\"$MILLRACE_TEST_SKIPPED\"; "
	}
	for script, want := range map[string]string{
		"true": "skipped: nothing\n",
		"echo done; " + note("p", "TestA", "needs root") + "../../scripts/skipped sh -c \"" + strings.ReplaceAll(note("q", "TestB", "needs root"), `"`, `\"`) + "\"; " + note("q", "TestC", "no disk") + "exit 3": "done\nskipped 3 tests: 2 tests (needs root); TestC (no disk)\n",
	} {
		cmd := exec.Command("../../scripts/skipped", "sh", "-c", script)
		cmd.Env = append(os.Environ(), "MILLRACE_TEST_SKIPPED=")
		out, err := cmd.Output()
		if failed := strings.HasSuffix(script, "exit 3"); string(out) != want || (err != nil) != failed || failed && cmd.ProcessState.ExitCode() != 3 {
			t.Errorf("%s: %q, %v", script, out, err)
		}
	}
}
