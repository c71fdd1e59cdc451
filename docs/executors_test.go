package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page of executors names every promise of the drivers' suite, and no test that
// is not there.
func TestWhatIsProvedOfExecutorsIsSo(t *testing.T) {
	t.Parallel()
	page := readAll(t, "operating/executors.md")
	promises := regexp.MustCompile(`(?m)^\t\t"([^"]+)": +\w+,$`).FindAllStringSubmatch(readAll(t, "../internal/engine/executor/drivertest/*.go"), -1)
	if len(promises) < 30 {
		t.Fatalf("only %d promises are found", len(promises))
	}
	for _, promise := range promises {
		if !strings.Contains(page, "\n| "+promise[1]+" |") {
			t.Errorf("the page does not say: %s", promise[1])
		}
	}
	tests := readAll(t, "../internal/engine/executor/*/*_test.go") + readAll(t, "../internal/engine/executor/shim/*/*_test.go") + readAll(t, "../cmd/millrace/*_test.go")
	_, proved, _ := strings.Cut(page, "## What is proved of each")
	names := regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(proved, -1)
	if len(names) < 20 {
		t.Fatalf("only %d tests are named", len(names))
	}
	for _, name := range names {
		if name[1] != "slurmctld" && !strings.Contains(tests, "\nfunc "+name[1]+"(t *testing.T") {
			t.Errorf("there is no test %s", name[1])
		}
	}
}

// readAll joins the files that match.
func readAll(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
