// Package cratetest validates RO-Crates in tests, with roc-validator.
package cratetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"testing"
)

// The profiles.
const (
	Provenance = "provenance-run-crate"
	Workflow   = "workflow-run-crate"
)

// validated is what roc-validator says of a crate.
type validated struct {
	Crate    string
	Failures []struct{ Severity, Check, Name, Message, Entity string }
}

// Validate has crates checked in one call: the folder of each against its profile. What
// is required fails the test, and so does what is recommended and not explained.
func Validate(t *testing.T, profiles map[string]string) {
	t.Helper()
	for _, v := range validate(t, profiles) {
		for _, failure := range v.unexplained() {
			t.Errorf("%s: %s", filepath.Base(v.Crate), failure)
		}
	}
}

func validate(t *testing.T, profiles map[string]string) (list []validated) {
	t.Helper()
	validator := os.Getenv("MILLRACE_TEST_ROCRATE")
	if validator == "" {
		t.Skip("there is no roc-validator: scripts/with-rocrate brings it")
	}
	_, here, _, _ := runtime.Caller(0)
	check := exec.Command(validator, filepath.Join(filepath.Dir(here), "..", "..", "..", "..", "e2e", "crates", "check.py"))
	var crates, said bytes.Buffer
	for _, folder := range slices.Sorted(maps.Keys(profiles)) {
		fmt.Fprintf(&crates, "%s\t%s\n", profiles[folder], folder)
	}
	check.Stdin, check.Stderr = &crates, &said
	out, err := check.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.Bytes())
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var v validated
		if json.Unmarshal(lines.Bytes(), &v) == nil && v.Crate != "" {
			list = append(list, v)
		}
	}
	if len(list) != len(profiles) {
		t.Fatalf("%d of %d crates were validated: %s", len(list), len(profiles), said.Bytes())
	}
	return list
}

// explained are checks that are no more than recommended and cannot be satisfied, with why.
var explained = []struct {
	name, entity string
	why          string
}{
	{"Web-based Data Entity: resource availability", "", "inputs and files in between are not in the crate, and nobody can fetch them without the team's rights"},
	{"SoftwareApplication id", "/(SoftwareSourceCode|ComputationalWorkflow)$", "the definition is a file of the crate, and so its id is a path"},
	{"Web-based Data Entity: `contentSize` property", "^https://host", "not every server tells how large a file is"},
	{"ContainerImage registry", "sif$", "an image in a file has no registry"},
	{"Application url", "#engine$", "whoever reports a run of another engine does not say where that has its page"},
	{"Action endTime", "", "a run that goes on has not ended"},
	{"Action result", "", "a step without outputs makes nothing, and one that failed may have made nothing"},
	{"FormalParameter inverse exampleOfWork", "#(input|parameter|output)/", "what is optional need not be given, and a run that failed lacks outputs"},
}

// unexplained are the failures that nobody has explained.
func (v validated) unexplained() (list []string) {
	for _, f := range v.Failures {
		known := f.Severity == "RECOMMENDED" && slices.ContainsFunc(explained, func(e struct{ name, entity, why string }) bool {
			return e.name == f.Name && regexp.MustCompile(e.entity).MatchString(f.Entity)
		})
		if !known {
			list = append(list, fmt.Sprintf("%s %s (%s): %s: %s", f.Severity, f.Check, f.Name, f.Message, f.Entity))
		}
	}
	return list
}
